# shellcheck shell=bash
# A report of the live node by the installed sos and its plugins for Open vSwitch
# and OVN. In new mount and UTS namespaces, the node's sockets and databases are at
# their standard paths, and the host has the node's name.

real_sos() {
    local out=$1
    command -v sos >/dev/null || die "sos is not installed (Debian: sosreport)"
    mkdir -p "$LAB/sos"
    # The tools must use their standard paths.
    # shellcheck disable=SC2016 # the inner shell's
    env -u OVS_RUNDIR -u OVS_LOGDIR -u OVS_DBDIR -u OVS_SYSCONFDIR -u OVN_RUNDIR -u OVN_LOGDIR \
        -u OVN_DBDIR -u OVN_SYSCONFDIR -u OVN_NB_DB -u OVN_SB_DB LAB="$LAB" HOST="$TOPO_HOST" \
        unshare --mount --uts bash -euc '
        hostname "$HOST"
        mount -t tmpfs tmpfs /run
        mkdir -p /run/openvswitch /run/ovn /run/lock /var/lib/openvswitch
        mount --bind "$LAB/ovs" /run/openvswitch
        mount --bind "$LAB/ovs" /var/lib/openvswitch
        if [ -e "$LAB/ovn/ovnnb_db.db" ]; then
            mount --bind "$LAB/ovn" /run/ovn
            mkdir -p /var/lib/openvswitch/ovn
            mount --bind "$LAB/ovn" /var/lib/openvswitch/ovn
        fi
        exec sos report --batch --quiet --no-report --tmp-dir "$LAB/sos" -e openvswitch,ovn_host,ovn_central \
            -o openvswitch,ovn_host,ovn_central,dpkg
    ' </dev/null >"$LAB/sos.out" 2>&1 || {
        cat "$LAB/sos.out" >&2
        die "sos report failed"
    }
    clean_sos
    mkdir -p "$out/cleaned"
    mv "$LAB"/sos/*-obfuscated.tar.* "$out/cleaned"
    mv "$LAB"/sos/*.tar.* "$out"
}

# The same report after `sos clean`.
clean_sos() {
    # shellcheck disable=SC2016 # the inner shell's
    LAB="$LAB" unshare --mount bash -euc '
        mount -t tmpfs tmpfs /run
        [ ! -d /etc/sos ] || mount -t tmpfs tmpfs /etc/sos
        exec sos clean --batch --no-update --tmp-dir "$LAB/sos" "$LAB"/sos/sosreport-*.tar.xz
    ' </dev/null >"$LAB/sos.out" 2>&1 || {
        cat "$LAB/sos.out" >&2
        die "sos clean failed"
    }
}
