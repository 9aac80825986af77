#!/bin/bash
# Runs in the init container: brings Flux and its configuration to where the training container finds them.
set -eu

target=/mnt/flux
config="$target/config"

mkdir -p \
    "$config/etc/flux/config" \
    "$config/etc/flux/system/cron.d" \
    "$config/etc/curve" \
    "$config/run/flux" \
    "$config/var/lib/flux" \
    "$target/view"

printf '%s\n' '@HOSTS@' > "$config/etc/flux/system/hostlist"

cat > "$config/etc/flux/config/broker.toml" <<'BROKER'
[access]
allow-guest-user = true
allow-root-owner = true

[resource]
path = "/mnt/flux/config/etc/flux/system/R"

[bootstrap]
curve_cert = "/mnt/flux/config/etc/curve/curve.cert"
default_port = 8050
default_bind = @BIND@
default_connect = @CONNECT@
hosts = [{ host = @HOSTS_TOML@ }]

[archive]
dbpath = "/mnt/flux/config/var/lib/flux/job-archive.sqlite"
period = "1m"
busytimeout = "50s"

[sched-fluxion-qmanager]
queue-policy = @QUEUE_POLICY@
BROKER

# /opt/view is a link into this folder; what it leads to is what has to be copied.
for view in /opt/views/._view/*; do
    cp -R "$view/." "$target/view"
done
cp -R /opt/software "$target/"
echo "Flux is ready for $(hostname)"
