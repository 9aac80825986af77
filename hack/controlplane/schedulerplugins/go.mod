module ktrainer/controlplane/schedulerplugins

go 1.26.0

require sigs.k8s.io/scheduler-plugins v0.35.4-devel
