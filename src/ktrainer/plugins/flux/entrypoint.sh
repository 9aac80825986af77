#!/bin/bash
# Runs in the training container: the first node starts Flux and the training in it, the others join and wait.
set -u

target=/mnt/flux
config="$target/config"
view="$target/view"
program="${1:-}"

# Behind what the image has, so that its own programs win.
export PATH="$PATH:$view/bin"
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}:$view/lib"
export FLUX_RC_EXTRA="$view/etc/flux/rc1.d"
for packages in "$view"/lib/python3*/site-packages; do
    export PYTHONPATH="${PYTHONPATH:-}:$packages"
done
mkdir -p /opt/software
cp -R "$target/software/." /opt/software/

# Flux takes a certificate only from an owner who shares it with nobody.
certificate="$config/etc/curve/curve.cert"
cp /curve/curve.cert "$certificate"
chown "$(id -u)" "$certificate"
chmod 0400 "$certificate"

flux R encode --hosts="$(cat "$config/etc/flux/system/hostlist")" @RESOURCES@ > "$config/etc/flux/system/R"

options=(
    "-Scron.directory=$config/etc/flux/system/cron.d"
    -Stbon.fanout=256
    "-Srundir=$config/run/flux"
    "-Sstatedir=$config/var/lib/flux"
    "-Slocal-uri=local://$config/run/flux/local"
    -Slog-stderr-level=0
    -Slog-stderr-mode=local
)
broker=(--config "$config/etc/flux/config" "${options[@]}")

if [ "$(hostname)" = '@LEADER@' ]; then
    if [ -z "$program" ]; then
        exec flux broker --config-path "$config/etc/flux/config" "${options[@]}"
    fi
    # The program comes as one text: its words are told apart by blanks, and nothing else in it is special.
    set -f
    # shellcheck disable=SC2086
    exec flux start -o "${broker[@]}" flux run @TASKS@ $program
fi

# The leader may come up later than this node.
until flux start -o "${broker[@]}"; do
    echo "The leader is not there yet, or has restarted; trying again in 15 seconds"
    sleep 15
done
