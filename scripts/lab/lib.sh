# shellcheck shell=bash
# Shared pieces of the lab: daemons, namespaces, waiting, sos-like capture,
# traces. Sourced by `lab` and, through it, by the topologies.
#
# Everything a lab makes stands under $LAB:
#   ovs/  rundir, logs and conf.db of the node under test
#   ovn/  rundir, logs and databases of the OVN central and of ovn-controller
#   partner/  the same of the switch at the other end of the node's cables
#   net/  a private netns each for the node, the central and the partner, held
#         open by the daemons in them, so nothing is left when those have ended

shopt -s extglob

# The node's kernel-like datapath features. A dummy datapath is a userspace
# one and offers more than the kernel's; what it offers beyond is switched
# off, so that translation takes the kernel's way: set(tunnel()) towards
# genev_sys_6081 instead of tnl_push, no explicit drop action, hash algorithm
# 0 for dp_hash groups. Features can only be lowered. A topology may say
# otherwise in TOPO_FEATURES.
# What no feature tells: a dummy datapath learns no RTT, has no conntrack helper
# modules, and a flow that the kernel would refuse it may take.
# shellcheck disable=SC2034 # lab makes it the default of TOPO_FEATURES
KERNEL_FEATURES=(
    tnl_push_pop=false
    explicit_drop_action=false
    lb_output_action=false
    nd_ext=false
    max_hash_alg=0
)

say() { printf 'lab: %s\n' "$*" >&2; }

die() {
    say "$*"
    exit 1
}

# Sets the paths and the environment of the lab in $1. The tools find the
# lab's daemons through it alone; -DAEMON and -OPTIONS variables of the caller
# would point them elsewhere.
use_lab() {
    LAB=$1
    export OVS_RUNDIR=$LAB/ovs OVS_LOGDIR=$LAB/ovs OVS_DBDIR=$LAB/ovs OVS_SYSCONFDIR=$LAB/etc
    export OVN_RUNDIR=$LAB/ovn OVN_LOGDIR=$LAB/ovn OVN_DBDIR=$LAB/ovn OVN_SYSCONFDIR=$LAB/etc
    export OVN_NB_DB=unix:$LAB/ovn/ovnnb_db.sock OVN_SB_DB=unix:$LAB/ovn/ovnsb_db.sock
    unset OVN_NB_DAEMON OVN_SB_DAEMON OVN_NBCTL_OPTIONS OVN_SBCTL_OPTIONS
    export LC_ALL=C TZ=UTC
}

# wait_for WHAT SECONDS COMMAND...: polls until COMMAND succeeds.
wait_for() {
    local what=$1 deadline=$((SECONDS + $2))
    shift 2
    until "$@"; do
        if ((SECONDS >= deadline)); then
            say "gave up waiting for $what"
            return 1
        fi
        sleep 0.05
    done
}

# --- daemons ---------------------------------------------------------------

# The pid in a pidfile of ours, if a process that was started with that very
# pidfile still runs: a pid alone could be somebody else's by now.
daemon_pid() {
    local pidfile=$1 pid argument
    local -a arguments=()
    { read -r pid <"$pidfile"; } 2>/dev/null || return 1
    [[ $pid =~ ^[0-9]+$ ]] || return 1
    { mapfile -t -d '' arguments <"/proc/$pid/cmdline"; } 2>/dev/null || return 1
    for argument in "${arguments[@]}"; do
        if [[ $argument == "--pidfile=$pidfile" ]]; then
            printf '%s\n' "$pid"
            return 0
        fi
    done
    return 1
}

is_ended() { ! daemon_pid "$1" >/dev/null; }

# start_daemon NAMESPACE DIR NAME PROGRAM ARGS...
# The first daemon in a namespace makes it and holds it open.
start_daemon() {
    local ns=$1 dir=$2 name=$3 holder
    shift 3
    local -a enter=(unshare --net)
    if [[ -e $LAB/net/$ns ]]; then
        holder=$(daemon_pid "$(<"$LAB/net/$ns")") || die "namespace $ns has gone"
        enter=(nsenter --target "$holder" --net)
    fi
    # --detach returns once the daemon serves; the deadline is for those that
    # never do (a second ovs-vswitchd on one database, for instance).
    if ! timeout 20 "${enter[@]}" "$@" \
        --pidfile="$dir/$name.pid" --log-file="$dir/$name.log" \
        -vconsole:off -vsyslog:off --detach </dev/null >>"$dir/$name.out" 2>&1; then
        cat "$dir/$name.out" >&2
        tail -n 5 "$dir/$name.log" >&2 || true
        die "$name did not start"
    fi
    [[ -e $LAB/net/$ns ]] || printf '%s\n' "$dir/$name.pid" >"$LAB/net/$ns"
}

in_ns() {
    local ns=$1 holder
    shift
    holder=$(daemon_pid "$(<"$LAB/net/$ns")") || die "namespace $ns has gone"
    nsenter --target "$holder" --net -- "$@"
}

# Ends what runs in the lab, dependants first; never anything else. SIGTERM,
# and SIGKILL only for what does not listen.
stop_daemons() {
    local name pidfile pid rc=0
    for name in ovn/ovn-controller ovn/ovn-northd ovs/ovs-vswitchd partner/ovs-vswitchd \
        ovn/ovnsb ovn/ovnnb ovs/ovsdb-server partner/ovsdb-server; do
        pidfile=$LAB/$name.pid
        pid=$(daemon_pid "$pidfile") || continue
        kill -TERM "$pid" 2>/dev/null || true
        if ! wait_for "${name#*/} to end" 5 is_ended "$pidfile"; then
            pid=$(daemon_pid "$pidfile") || continue
            kill -KILL "$pid" 2>/dev/null || true
            wait_for "${name#*/} to end" 5 is_ended "$pidfile" || rc=1
        fi
    done
    return "$rc"
}

# --- bringing up -------------------------------------------------------------

start_ovs() {
    ovsdb-tool create "$LAB/ovs/conf.db" /usr/share/openvswitch/vswitch.ovsschema
    start_daemon node "$LAB/ovs" ovsdb-server ovsdb-server "$LAB/ovs/conf.db" \
        --remote="punix:$LAB/ovs/db.sock"
    # lo must be up before ovs-vswitchd starts, or sFlow and IPFIX stay off.
    in_ns node ip link set lo up
    ovs-vsctl --no-wait -- init -- set Open_vSwitch . \
        db_version="$(ovsdb-tool schema-version /usr/share/openvswitch/vswitch.ovsschema)" \
        ovs_version="$(ovs_version)" system_type=debian system_version='"12"' \
        external_ids:hostname="$TOPO_HOST" external_ids:rundir=/var/run/openvswitch \
        external_ids:system-id="$TOPO_SYSTEM_ID" "${TOPO_OVS_SETTINGS[@]}"
    # "system", not "override": system ports and the datapath become dummies,
    # so the database says what a real node's says (type "" for taps, internal
    # for the bridges) and no device is needed, while geneve, vxlan and gre
    # stay the real thing (real veths would need the node's traffic to be kept
    # away from them, and give nothing that a trace could show).
    start_daemon node "$LAB/ovs" ovs-vswitchd ovs-vswitchd --enable-dummy=system \
        "unix:$LAB/ovs/db.sock"
}

ovs_version() { ovs-vswitchd --version | sed -n '1s/.* //p'; }

set_kernel_features() {
    local pair bridge
    # They belong to the datapath, which all bridges share.
    bridge=$(ovs-vsctl --real list-br | sed -n 1p)
    for pair in "${TOPO_FEATURES[@]}"; do
        ovs-appctl dpif/set-dp-features "$bridge" "${pair%%=*}" "${pair#*=}" >/dev/null
    done
}

# start_partner: another switch, with a database and a namespace of its own,
# for what takes two: LACP, spanning tree, CFM.
start_partner() {
    mkdir -p "$LAB/partner"
    ovsdb-tool create "$LAB/partner/conf.db" /usr/share/openvswitch/vswitch.ovsschema
    start_daemon partner "$LAB/partner" ovsdb-server ovsdb-server "$LAB/partner/conf.db" \
        --remote="punix:$LAB/partner/db.sock" --unixctl="$LAB/partner/ovsdb-server.ctl"
    partner ovs-vsctl --no-wait init
    start_daemon partner "$LAB/partner" ovs-vswitchd ovs-vswitchd --enable-dummy=system \
        "unix:$LAB/partner/db.sock" --unixctl="$LAB/partner/ovs-vswitchd.ctl"
}

# partner COMMAND...: a tool, asked of the partner. ovs-appctl finds its
# daemon by the pidfile's pid, hence -t.
partner() {
    local tool=$1
    shift
    if [[ $tool == ovs-appctl ]]; then
        set -- -t "$LAB/partner/ovs-vswitchd.ctl" "$@"
    fi
    OVS_RUNDIR=$LAB/partner OVS_DBDIR=$LAB/partner "$tool" "$@"
}

# A cable from the node's IFACE to the partner's interface of that name: both
# ends' options, as words for `set Interface`. A real node's database has no
# such options; `lab capture` takes them out of what it writes.
near_end() { printf 'options:pstream=punix:%s/partner/%s.sock' "$LAB" "$1"; }
far_end() { printf 'options:stream=unix:%s/partner/%s.sock' "$LAB" "$1"; }

is_cabled() { [[ $(ovs-appctl netdev-dummy/conn-state "$1" 2>/dev/null) == *': connected' ]]; }

# add_flows BRIDGE VERSION: from standard input, with ports as `@name@`.
add_flows() { numbered_ports | ovs-ofctl -O "$2" --bundle add-flows "$1" -; }

# hear BRIDGE FLOW: the bridge meets a packet and learns from it, by flows
# and by MAC table.
hear() {
    ovs-appctl ofproto/trace "$1" "$(numbered_ports <<<"$2")" -generate >/dev/null
}

# met_before: a node has met its packets before somebody traces them, and its
# bonds have bound their hashes to members by then.
met_before() {
    local bridge options flow
    local -a words
    while IFS='|' read -r bridge options flow; do
        read -ra words <<<"$options"
        ovs-appctl ofproto/trace "${words[@]}" "$bridge" "$flow" >/dev/null
    done < <(topo_packets | grep -v -e '^#' -e '^$' | numbered_ports)
}

has_group() { [[ $(ovs-appctl mdb/show "$1") == *" $2 "* ]]; }

# link_node_to_central NODE_LINK NODE_CIDR CENTRAL_CIDR: a veth between the
# two private namespaces, so that the database names a central over TCP, as on
# a real node, with no TCP on the host.
link_node_to_central() {
    local central
    central=$(daemon_pid "$(<"$LAB/net/central")")
    in_ns central ip link set lo up
    in_ns node ip link add "$1" type veth peer name eth0 netns "$central"
    in_ns node ip addr add "$2" dev "$1"
    in_ns node ip link set "$1" up
    in_ns central ip addr add "$3" dev eth0
    in_ns central ip link set eth0 up
}

start_central() {
    local db
    for db in nb sb; do
        ovsdb-tool create "$LAB/ovn/ovn${db}_db.db" "/usr/share/ovn/ovn-$db.ovsschema"
        start_daemon central "$LAB/ovn" "ovn$db" ovsdb-server "$LAB/ovn/ovn${db}_db.db" \
            --remote="punix:$LAB/ovn/ovn${db}_db.sock" --unixctl="$LAB/ovn/ovn${db}_db.ctl"
    done
    link_node_to_central "$TOPO_UNDERLAY" "$TOPO_UNDERLAY_CIDR" "$TOPO_CENTRAL_CIDR"
    ovs-appctl -t "$LAB/ovn/ovnsb_db.ctl" ovsdb-server/add-remote \
        "ptcp:6642:${TOPO_CENTRAL_CIDR%/*}"
    ovn-nbctl init
    ovn-sbctl init
    start_daemon central "$LAB/ovn" ovn-northd ovn-northd \
        --ovnnb-db="$OVN_NB_DB" --ovnsb-db="$OVN_SB_DB"
}

start_controller() {
    start_daemon node "$LAB/ovn" ovn-controller ovn-controller "unix:$LAB/ovs/db.sock"
    wait_for "the chassis row" 20 has_chassis "$TOPO_SYSTEM_ID"
}

has_chassis() { [[ -n $(ovn-sbctl --bare --columns=_uuid find Chassis name="$1") ]]; }

# add_chassis NAME HOSTNAME IP: a chassis without a node behind it. It claims
# the same abilities as the real one: northd writes flows for the least able.
add_chassis() {
    local name=$1 hostname=$2 ip=$3 abilities
    abilities=$(ovn-sbctl get Chassis "$TOPO_SYSTEM_ID" other_config)
    ovn-sbctl chassis-add "$name" geneve "$ip" \
        -- set Chassis "$name" hostname="$hostname" other_config="$abilities"
}

# Binds a logical port to a chassis without a node.
bind_remote() {
    ovn-sbctl --may-exist lsp-bind "$1" "$2"
}

# learn_mac ROUTER_PORT IP MAC: what a router has learned of a neighbour, just
# now: northd ages out what has no time.
learn_mac() {
    local datapath
    datapath=$(ovn-sbctl --bare --columns=datapath find Port_Binding logical_port="$1")
    ovn-sbctl create MAC_Binding logical_port="$1" ip="$2" mac="\"$3\"" \
        datapath="$datapath" timestamp="$(date +%s%3N)" >/dev/null
}

# --- readiness -----------------------------------------------------------------

# What a trace depends on and may still be moving. A run of equal fingerprints
# means that nothing is being installed any more.
fingerprint() {
    local bridge version
    while read -r bridge; do
        version=$(best_version "$bridge")
        ovs-ofctl -O "$version" dump-flows --no-stats "$bridge"
        ovs-ofctl -O "$version" dump-groups "$bridge"
        ovs-ofctl -O "$version" dump-meters "$bridge"
        # without the age
        ovs-appctl mdb/show "$bridge" 2>/dev/null | awk '{print $1, $2, $3}' | sort
        ovs-appctl fdb/show "$bridge" | awk '{print $1, $2, $3}' | sort
    done < <(ovs-vsctl --real list-br) | grep -v '(xid=' | sha256sum
    ovs-appctl dpif/show | sed 's/: hit:.*//' | sha256sum
    ovs-appctl bfd/show | awk '/^----/ || /Forwarding/' | sha256sum
    ovs-appctl bond/show | awk '/^----/ || /member/ || /may_enable/' | sha256sum
    ovs-appctl lacp/show | awk '/^----/ || /member:/' | sha256sum
    ovs-appctl cfm/show | awk '/^----/ || /fault: |opstate: /' | sha256sum
    { ovs-appctl stp/show; ovs-appctl rstp/show; } 2>&1 | sha256sum
}

has_learned() { [[ $(ovs-appctl fdb/show "$1") == *" $2 "* ]]; }

# wait_for_macs BRIDGE MAC...: a node announces the addresses it serves; traces
# taken before and after a switch has heard them differ.
wait_for_macs() {
    local bridge=$1 mac
    shift
    for mac in "$@"; do
        wait_for "$mac to be learned on $bridge" 10 has_learned "$bridge" "$mac"
    done
}

is_here() {
    [[ $(ovn-sbctl --bare --columns=chassis find Port_Binding logical_port="$1") == \
        $(ovn-sbctl --bare --columns=_uuid find Chassis name="$TOPO_SYSTEM_ID") ]]
}

is_not_here() { ! is_here "$1"; }

# set_forwarding INTERFACE true|false: no peer answers in a lab, so BFD is told
# what it would have found out. ovs-vswitchd goes by "forwarding", ovn-controller
# by "state", which no command can force; ovs-vswitchd writes the column only
# when something changed, so what is put there stays.
set_forwarding() {
    ovs-appctl bfd/set-forwarding "$1" "$2" >/dev/null
    wait_for "BFD of $1 to be $2" 10 is_forwarding "$1" "$2"
    if [[ $2 == true ]]; then
        ovs-vsctl --no-wait set Interface "$1" bfd_status:state=up bfd_status:remote_state=up
    fi
}

is_forwarding() { [[ $(ovs-vsctl get Interface "$1" bfd_status:forwarding) == "\"$2\"" ]]; }

# Changes come in waves (ovs-vswitchd's status to the database, ovn-controller's
# answer to it), hence not two but six equal ones.
is_stable() {
    local now
    now=$(fingerprint)
    if [[ $now != "${LAST_FINGERPRINT-}" ]]; then
        LAST_FINGERPRINT=$now
        SAME_FINGERPRINTS=0
    fi
    ((++SAME_FINGERPRINTS > 6))
}

has_installed() {
    local missing
    missing=$(ovs-vsctl --bare --columns=name find Interface \
        'external_ids:iface-id!=""' 'external_ids:ovn-installed!="true"' 2>/dev/null) || return 1
    [[ -z $missing ]]
}

wait_for_ovn() {
    ovn-nbctl --timeout=30 --wait=hv sync
    wait_for "ovn-controller to install every port's flows" 20 has_installed
    ovn-nbctl --timeout=30 --wait=hv sync
}

wait_for_stable() {
    LAST_FINGERPRINT=
    wait_for "the flows to settle" 20 is_stable
}

# --- asking the node --------------------------------------------------------------

# The highest OpenFlow version a bridge allows.
best_version() {
    allowed_versions "$1" | tail -n 1
}

allowed_versions() {
    local set version
    # A "fake" bridge has no row, and so no restriction either.
    set=$(ovs-vsctl get Bridge "$1" protocols 2>/dev/null) || set='[]'
    for version in OpenFlow10 OpenFlow11 OpenFlow12 OpenFlow13 OpenFlow14 OpenFlow15; do
        if [[ $set == '[]' || $set == *"$version"* ]]; then
            printf '%s\n' "$version"
        fi
    done
}

# The tunnel port towards an address.
tunnel_to() {
    ovs-vsctl --bare --columns=name find Interface type=geneve "options:remote_ip=\"$1\""
}

ofport() { ovs-vsctl get Interface "$1" ofport; }

# The keys by which a tunnel packet names its switch and its ports.
datapath_key() {
    ovn-sbctl --bare --columns=tunnel_key find Datapath_Binding external_ids:name="$1"
}
port_key() { ovn-sbctl --bare --columns=tunnel_key find Port_Binding logical_port="$1"; }

# tunnel_keys SWITCH_OR_ROUTER IN_PORT OUT_PORT: the match of a geneve packet
# of OVN: 15 bits of ingress and 16 of egress port in the option.
tunnel_keys() {
    local in out
    in=$(port_key "$2")
    out=$(port_key "$3")
    printf 'tun_id=%s,tun_metadata0=%s' "$(datapath_key "$1")" $((in << 16 | out))
}
