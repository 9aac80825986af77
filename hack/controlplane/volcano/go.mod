module ktrainer/controlplane/volcano

go 1.26.0

require volcano.sh/volcano v1.15.0
