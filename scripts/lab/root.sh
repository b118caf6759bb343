# shellcheck shell=bash
# Runs the lab with the programs of another root file system: those of another release.

# enter_root ROOT COMMAND ARGS...: runs the lab again with ROOT as its root. The
# entries of ROOT are mounted read-only, so that several labs can use it at once. Of
# the host, only /dev, /proc, the folder for temporary files, the lab and the folders
# that ARGS name are visible.
enter_root() {
    local root command=$2 topology=${3-}
    local -a folders
    root=$(cd "$1" && pwd -P) || die "no root file system in $1"
    case $command/$# in
    list/2 | set-list/2) folders=() ;;
    up/4 | run/4 | set-up/4) folders=("$4") ;;
    capture/4 | oracle/4 | set-capture/4) folders=("$3" "$4") topology='' ;;
    down/3 | set-down/3) folders=("$3") topology='' ;;
    *) die "no command $command with --root" ;;
    esac
    local -a enter=(unshare --mount)
    [[ $(id -u) -eq 0 ]] || enter=(unshare --user --map-root-user --mount)
    if ((${#folders[@]})); then
        mkdir -p "${folders[@]}"
        mapfile -t folders < <(realpath "${folders[@]}")
    fi
    # shellcheck disable=SC2016 # the dollars of the inner shell
    exec "${enter[@]}" bash -euc "$MOUNT_ROOT" lab "$root" "$HERE" "${TMPDIR:-/tmp}" "${folders[@]}" \
        -- "$command" ${topology:+"$topology"} "${folders[@]}"
}

# The mounts are made on the root's /mnt, in a mount namespace of its own.
# shellcheck disable=SC2016 # the dollars of the inner shell
MOUNT_ROOT='
    root=$1 here=$2 new=$1/mnt
    shift
    mount -t tmpfs none "$new"
    for entry in "$root"/*; do
        name=${entry##*/}
        case $name in
        dev | proc | mnt | tmp | root | home) continue ;;
        esac
        if [[ -L $entry ]]; then
            cp -P "$entry" "$new/$name"
        elif [[ -d $entry ]]; then
            mkdir "$new/$name"
            mount --bind -o ro "$entry" "$new/$name"
        fi
    done
    # Folders of users may hold this repository.
    mkdir "$new/root" "$new/home"
    mkdir -m 1777 "$new/tmp"
    for folder in /dev /proc; do
        mkdir "$new$folder"
        mount --rbind "$folder" "$new$folder"
    done
    while [[ $1 != -- ]]; do
        mkdir -p "$new$1"
        mount --rbind "$1" "$new$1"
        shift
    done
    shift
    exec chroot "$new" "$here/lab" "$@"'
