# shellcheck shell=bash
# Functions that the topologies share: daemons, namespaces, waiting, traces.
# `lab` sources it before a topology.
#
# The files of a lab are below $LAB:
#   ovs/  rundir, logs and conf.db of the node under test
#   ovn/  rundir, logs and databases of the OVN central and of ovn-controller
#   partner/  the same for a second switch that is connected to the node
#   net/  one network namespace each for the node, the central and the partner;
#         their daemons hold them open, so they end with the daemons
# Of a set (set.sh), each node is such a lab; the nodes share one network namespace, in
# which `lab` runs already.

shopt -s extglob

# The features of the kernel's datapath. A dummy datapath is a userspace datapath
# with more features. The lab disables those, so that flows are translated as for
# the kernel: set(tunnel()) and genev_sys_6081 instead of tnl_push, no explicit
# drop action, hash algorithm 0 for dp_hash groups. Features can only be disabled.
# A topology can set other features in TOPO_FEATURES.
# Other differences remain: a dummy datapath measures no RTT, has no conntrack
# helpers, and accepts flows that the kernel rejects.
# shellcheck disable=SC2034 # the default of TOPO_FEATURES in lab
KERNEL_FEATURES=(
    tnl_push_pop=false
    explicit_drop_action=false
    lb_output_action=false
    nd_ext=false
    max_hash_alg=0
)

# shellcheck disable=SC2034 # the default of TOPO_VERSIONS in lab
ALL_VERSIONS=(OpenFlow10 OpenFlow11 OpenFlow12 OpenFlow13 OpenFlow14 OpenFlow15)

say() { printf 'lab: %s\n' "$*" >&2; }

die() {
    say "$*"
    exit 1
}

# Sets the paths and the environment of the lab in $1, by which tools find the
# lab's daemons, and ENTER, which runs a command in the network namespace of a set's node. Variables *_DAEMON and *_OPTIONS of the caller would direct tools to
# other daemons.
use_lab() {
    LAB=$1
    CENTRAL=$1/ovn
    export OVS_RUNDIR=$LAB/ovs OVS_LOGDIR=$LAB/ovs OVS_DBDIR=$LAB/ovs OVS_SYSCONFDIR=$LAB/etc
    export OVN_RUNDIR=$LAB/ovn OVN_LOGDIR=$LAB/ovn OVN_DBDIR=$LAB/ovn OVN_SYSCONFDIR=$LAB/etc
    export OVN_NB_DB=unix:$CENTRAL/ovnnb_db.sock OVN_SB_DB=unix:$CENTRAL/ovnsb_db.sock
    unset OVN_NB_DAEMON OVN_SB_DAEMON OVN_NBCTL_OPTIONS OVN_SBCTL_OPTIONS
    export LC_ALL=C TZ=UTC
    ENTER=()
    if [[ $KERNEL == yes && -e /run/netns/${LAB##*/} ]]; then
        ENTER=(nsenter --net="/run/netns/${LAB##*/}")
    fi
}

# How many times longer to wait, before giving up, than an idle machine needs at most.
LAB_PATIENCE=${LAB_PATIENCE:-6}

# wait_for WHAT SECONDS COMMAND...: polls until COMMAND succeeds.
wait_for() {
    local what=$1 deadline=$((SECONDS + $2 * LAB_PATIENCE))
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

# Prints the pid in a pid file if the process was started with that pid file. After
# a daemon has ended, another process can have its pid.
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
# The first daemon in a namespace creates it and holds it open. The daemons of a set use
# the namespace of `lab`, or on the kernel's datapath those of their nodes.
start_daemon() {
    local ns=$1 dir=$2 name=$3 holder
    shift 3
    local -a enter=(unshare --net)
    if [[ -n $SET ]]; then
        enter=("${ENTER[@]}")
    elif [[ -e $LAB/net/$ns ]]; then
        holder=$(daemon_pid "$(<"$LAB/net/$ns")") || die "namespace $ns does not exist any more"
        enter=(nsenter --target "$holder" --net)
    fi
    # --detach returns when the daemon is ready. Some never are, such as a second
    # ovs-vswitchd on one database: hence the time limit.
    if ! timeout $((20 * LAB_PATIENCE)) "${enter[@]}" "$@" \
        --pidfile="$dir/$name.pid" --log-file="$dir/$name.log" \
        -vconsole:off -vsyslog:off --detach </dev/null >>"$dir/$name.out" 2>&1; then
        cat "$dir/$name.out" >&2
        tail -n 5 "$dir/$name.log" >&2 || true
        die "$name did not start"
    fi
    [[ -n $SET || -e $LAB/net/$ns ]] || printf '%s\n' "$dir/$name.pid" >"$LAB/net/$ns"
}

in_ns() {
    local ns=$1 holder
    shift
    holder=$(daemon_pid "$(<"$LAB/net/$ns")") || die "namespace $ns does not exist any more"
    nsenter --target "$holder" --net -- "$@"
}

# Ends only the lab's daemons, dependent ones first: with SIGTERM, and with
# SIGKILL if they do not end.
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

# --- starting -------------------------------------------------------------

start_ovs() {
    ovsdb-tool create "$LAB/ovs/conf.db" /usr/share/openvswitch/vswitch.ovsschema
    start_daemon node "$LAB/ovs" ovsdb-server ovsdb-server "$LAB/ovs/conf.db" \
        --remote="punix:$LAB/ovs/db.sock"
    # sFlow and IPFIX only start if lo is up before ovs-vswitchd starts.
    [[ -n $SET ]] || in_ns node ip link set lo up
    ovs-vsctl --no-wait -- init -- set Open_vSwitch . \
        db_version="$(ovsdb-tool schema-version /usr/share/openvswitch/vswitch.ovsschema)" \
        ovs_version="$(ovs_version)" system_type=debian system_version='"12"' \
        external_ids:hostname="$TOPO_HOST" external_ids:rundir=/var/run/openvswitch \
        external_ids:system-id="$TOPO_SYSTEM_ID" "${TOPO_OVS_SETTINGS[@]}"
    # With "system" instead of "override", only system ports and the datapath are
    # dummies. The database has the types of a real node (type "" for taps, internal
    # for bridges), no devices are needed, and geneve, vxlan and gre are real. (Real
    # veths would add nothing to a trace, and would carry other traffic.)
    local -a dummy=(--enable-dummy=system)
    [[ $KERNEL == no ]] || dummy=()
    start_daemon node "$LAB/ovs" ovs-vswitchd ovs-vswitchd "${dummy[@]}" "unix:$LAB/ovs/db.sock"
}

ovs_version() { ovs-vswitchd --version | sed -n '1s/.* //p'; }

set_kernel_features() {
    local pair bridge
    # Features belong to the datapath, which all bridges share.
    bridge=$(ovs-vsctl --real list-br | sed -n 1p)
    for pair in "${TOPO_FEATURES[@]}"; do
        ovs-appctl dpif/set-dp-features "$bridge" "${pair%%=*}" "${pair#*=}" >/dev/null
    done
}

# start_partner: starts a second switch, with its own database and namespace, for
# protocols that need a peer: LACP, spanning tree, CFM.
start_partner() {
    mkdir -p "$LAB/partner"
    ovsdb-tool create "$LAB/partner/conf.db" /usr/share/openvswitch/vswitch.ovsschema
    start_daemon partner "$LAB/partner" ovsdb-server ovsdb-server "$LAB/partner/conf.db" \
        --remote="punix:$LAB/partner/db.sock" --unixctl="$LAB/partner/ovsdb-server.ctl"
    partner ovs-vsctl --no-wait init
    start_daemon partner "$LAB/partner" ovs-vswitchd ovs-vswitchd --enable-dummy=system \
        "unix:$LAB/partner/db.sock" --unixctl="$LAB/partner/ovs-vswitchd.ctl"
}

# partner COMMAND...: runs a tool on the partner. ovs-appctl needs -t with the
# control socket.
partner() {
    local tool=$1
    shift
    if [[ $tool == ovs-appctl ]]; then
        set -- -t "$LAB/partner/ovs-vswitchd.ctl" "$@"
    fi
    OVS_RUNDIR=$LAB/partner OVS_DBDIR=$LAB/partner "$tool" "$@"
}

# Prints the options for `set Interface` that connect the node's IFACE to the
# partner's interface of the same name. A real node has no such options: `lab
# capture` removes them from its output.
near_end() { printf 'options:pstream=punix:%s/partner/%s.sock' "$LAB" "$1"; }
far_end() { printf 'options:stream=unix:%s/partner/%s.sock' "$LAB" "$1"; }

is_cabled() { [[ $(ovs-appctl netdev-dummy/conn-state "$1" 2>/dev/null) == *': connected' ]]; }

# add_flows BRIDGE VERSION: adds flows from standard input, with ports as `@name@`.
add_flows() { numbered_ports | ovs-ofctl -O "$2" --bundle add-flows "$1" -; }

# hear BRIDGE FLOW: makes a bridge receive a packet, from which its learn
# actions and its MAC table learn.
hear() {
    ovs-appctl ofproto/trace "$1" "$(numbered_ports <<<"$2")" -generate >/dev/null
}

# add_learned BRIDGE PORT VLAN MAC: makes a bridge learn an address. Releases before
# 2.16 have no fdb/add: they learn it from a packet to itself, which goes nowhere. (PORT
# must not be an access port then.)
add_learned() {
    ovs-appctl fdb/add "$@" >/dev/null 2>&1 ||
        ovs-appctl ofproto/trace-packet-out -generate "$1" \
            "$(numbered_ports <<<"in_port=@$2@,dl_vlan=$3,dl_src=$4,dl_dst=$4")" NORMAL >/dev/null
}

# met_before: makes the node receive each packet once before the traces, because
# a bond assigns a hash to a member at the first packet with that hash.
met_before() {
    local bridge options flow
    local -a words
    while IFS='|' read -r bridge options flow; do
        read -ra words <<<"$options"
        ovs-appctl ofproto/trace "${words[@]}" "$bridge" "$flow" >/dev/null
    done < <(topo_packets | grep -v -e '^#' -e '^$' | numbered_ports)
}

has_group() { [[ $(ovs-appctl mdb/show "$1") == *" $2 "* ]]; }

# link_node_to_central NODE_LINK NODE_CIDR CENTRAL_CIDR: connects the two namespaces
# with a veth pair. The database then names the central by a TCP address, as on a
# real node, without TCP on the host.
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
    start_databases
    link_node_to_central "$TOPO_UNDERLAY" "$TOPO_UNDERLAY_CIDR" "$TOPO_CENTRAL_CIDR"
    ovs-appctl -t "$CENTRAL/ovnsb_db.ctl" ovsdb-server/add-remote \
        "ptcp:6642:${TOPO_CENTRAL_CIDR%/*}"
    start_northd
}

start_databases() {
    local db
    for db in nb sb; do
        ovsdb-tool create "$CENTRAL/ovn${db}_db.db" "/usr/share/ovn/ovn-$db.ovsschema"
        start_daemon central "$CENTRAL" "ovn$db" ovsdb-server "$CENTRAL/ovn${db}_db.db" \
            --remote="punix:$CENTRAL/ovn${db}_db.sock" --unixctl="$CENTRAL/ovn${db}_db.ctl"
    done
    ovn-nbctl init
    ovn-sbctl init
}

start_northd() {
    start_daemon central "$CENTRAL" ovn-northd ovn-northd \
        --ovnnb-db="$OVN_NB_DB" --ovnsb-db="$OVN_SB_DB"
}

start_controller() {
    start_daemon node "$LAB/ovn" ovn-controller ovn-controller "unix:$LAB/ovs/db.sock"
    wait_for "the chassis row" 20 has_chassis "$TOPO_SYSTEM_ID"
}

has_chassis() { [[ -n $(ovn-sbctl --bare --columns=_uuid find Chassis name="$1") ]]; }

# add_chassis NAME HOSTNAME IP: adds a chassis without a node. It has the same
# features as the real one, because northd only uses features of all chassis.
add_chassis() {
    local name=$1 hostname=$2 ip=$3 abilities
    abilities=$(ovn-sbctl get Chassis "$TOPO_SYSTEM_ID" other_config)
    ovn-sbctl chassis-add "$name" geneve "$ip" \
        -- set Chassis "$name" hostname="$hostname" other_config="$abilities"
}

# Binds a logical port to such a chassis.
bind_remote() {
    ovn-sbctl --may-exist lsp-bind "$1" "$2"
}

# learn_mac ROUTER_PORT IP MAC: adds a MAC binding with the current time: northd
# removes bindings without a time.
learn_mac() {
    local datapath
    datapath=$(ovn-sbctl --bare --columns=datapath find Port_Binding logical_port="$1")
    ovn-sbctl create MAC_Binding logical_port="$1" ip="$2" mac="\"$3\"" \
        datapath="$datapath" timestamp="$(date +%s%3N)" >/dev/null
}

# --- readiness -----------------------------------------------------------------

# Prints a checksum of the state that traces depend on. Several equal checksums in a
# row mean that the node has settled.
fingerprint() {
    local bridge version
    while read -r bridge; do
        version=$(best_version "$bridge")
        ovs-ofctl -O "$version" dump-flows --no-stats "$bridge"
        ovs-ofctl -O "$version" dump-groups "$bridge"
        ovs-ofctl -O "$version" dump-meters "$bridge"
        # without the ages
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

# wait_for_macs BRIDGE MAC...: waits until a bridge has learned the addresses that
# the node announces, because traces differ before and after that.
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

# set_forwarding INTERFACE true|false: sets the BFD state, because no peer answers in
# a lab. ovs-vswitchd uses "forwarding", ovn-controller "state", which no command
# sets; ovs-vswitchd writes that column only after a change, so a value written here
# stays.
set_forwarding() {
    ovs-appctl bfd/set-forwarding "$1" "$2" >/dev/null
    wait_for "BFD of $1 to be $2" 10 is_forwarding "$1" "$2"
    if [[ $2 == true ]]; then
        ovs-vsctl --no-wait set Interface "$1" bfd_status:state=up bfd_status:remote_state=up
    fi
}

is_forwarding() { [[ $(ovs-vsctl get Interface "$1" bfd_status:forwarding) == "\"$2\"" ]]; }

# ovs-vswitchd writes status to the database, to which ovn-controller reacts, so
# changes pause in between: hence six equal checksums, not two.
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
    ovn-nbctl --timeout=$((30 * LAB_PATIENCE)) --wait=hv sync
    wait_for "ovn-controller to install every port's flows" 20 has_installed
    ovn-nbctl --timeout=$((30 * LAB_PATIENCE)) --wait=hv sync
}

wait_for_stable() {
    LAST_FINGERPRINT=
    wait_for "the flows to settle" 60 is_stable
}

# --- reading the node --------------------------------------------------------------

# Prints the highest OpenFlow version of a bridge.
best_version() {
    allowed_versions "$1" | tail -n 1
}

allowed_versions() {
    local set version
    # A fake bridge has no row, and so no restriction.
    set=$(ovs-vsctl get Bridge "$1" protocols 2>/dev/null) || set='[]'
    for version in "${TOPO_VERSIONS[@]}"; do
        if [[ $set == '[]' || $set == *"$version"* ]]; then
            printf '%s\n' "$version"
        fi
    done
}

# Prints the tunnel port to an address.
tunnel_to() {
    ovs-vsctl --bare --columns=name find Interface type=geneve "options:remote_ip=\"$1\""
}

ofport() { ovs-vsctl get Interface "$1" ofport; }

# The tunnel keys of a logical switch and of its ports.
datapath_key() {
    ovn-sbctl --bare --columns=tunnel_key find Datapath_Binding external_ids:name="$1"
}
port_key() { ovn-sbctl --bare --columns=tunnel_key find Port_Binding logical_port="$1"; }

# tunnel_keys SWITCH_OR_ROUTER IN_PORT OUT_PORT: prints the match of a geneve packet
# of OVN. Its option holds 15 bits of ingress and 16 bits of egress port.
tunnel_keys() {
    local in out
    in=$(port_key "$2")
    out=$(port_key "$3")
    printf 'tun_id=%s,tun_metadata0=%s' "$(datapath_key "$1")" $((in << 16 | out))
}

# logical_packet SWITCH PORT SOURCE_MAC MAC SOURCE IP REST: prints an IPv4 or IPv6 packet
# for ovn-trace.
logical_packet() {
    local ip=ip4
    [[ $5 != *:* ]] || ip=ip6
    printf '%s|inport == "%s" && eth.src == %s && eth.dst == %s && %s.src == %s && %s.dst == %s && ip.ttl == 64 && %s\n' \
        "$1" "$2" "$3" "$4" "$ip" "$5" "$ip" "$6" "$7"
}
