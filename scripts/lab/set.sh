# shellcheck shell=bash
# Sets: several live nodes with real packets between them.
#
# A set has one switch more than nodes, the fabric, which stands for the cables between
# them, with a bridge for each physical network. Dummy interfaces are wired in pairs: one
# end is on the node, the other, NODE-INTERFACE, on the fabric. Datapaths are dummies as
# in a lab of one node, but keep the feature tnl_push_pop: a dummy datapath forwards
# through native tunnels only. Each interface records in pcap/ what the switch sends. With
# `lab --kernel`, datapaths and interfaces are the kernel's instead (kernel.sh).
#
# The files of a set are below $SET:
#   nodes/NODE/  the files of a lab for each node, and pcap/
#   fabric/      the same for the fabric
#   central/     NB, SB and ovn-northd, unless each node has its own
#   ports        a line for each interface: node, bridge, interface, number, role, label,
#                and of a namespace's device the namespace
#   wires/       the sockets that join interfaces
#   relays/      a socket for each namespace, where its relay says what it has moved
#
# A topology, sets/NAME.sh, defines:
#   SET_SUMMARY, SET_NODES, SET_NETWORKS (bridges of the fabric)
#   SET_CENTRAL            one (for the set), each (one for each node), or none
#   SET_NAMESPACES         yes if nodes have network namespaces (namespaces.sh)
#   SET_ZONES              further conntrack zones than OVN's
#   node_identity NODE     sets TOPO_HOST, TOPO_SYSTEM_ID, TOPO_OVS_SETTINGS, TOPO_REMOTE
#                          for one node
#   node_switch            adds bridges and interfaces to the node
#   set_logical            fills the northbound databases; those of nodes it publishes
#   node_finish            what is left once flows are there

SET_FEATURES=(
    explicit_drop_action=false
    lb_output_action=false
    nd_ext=false
    max_hash_alg=0
)

load_set() {
    local file=$HERE/sets/$1.sh
    [[ $1 =~ ^[a-z0-9-]+$ && -r $file ]] || die "no set '$1' (lab set-list)"
    TOPO_OVS_SETTINGS=()
    TOPO_FEATURES=("${SET_FEATURES[@]}")
    # Enough to collect a node from; the others double the time of a capture.
    TOPO_VERSIONS=(OpenFlow10 OpenFlow14 OpenFlow15)
    TOPO_DATAPATH=system
    TOPO_DISGUISE=()
    TOPO_REMOTE=''
    SET_ZONES=()
    SET_NAMESPACES=no
    if [[ $KERNEL == yes ]]; then
        # shellcheck source=scripts/lab/kernel.sh
        . "$HERE/kernel.sh"
    fi
    # shellcheck source=/dev/null
    . "$file"
    TOPO_OVN=yes
    [[ $SET_CENTRAL != none ]] || TOPO_OVN=no
}

# use_node NODE: directs functions and tools to a node of the set.
use_node() {
    NODE=$1
    use_lab "$SET/nodes/$1"
    use_central
    node_identity "$1"
}

use_central() {
    [[ $SET_CENTRAL == one ]] || return 0
    CENTRAL=$SET/central/ovn
    export OVN_NB_DB=unix:$CENTRAL/ovnnb_db.sock OVN_SB_DB=unix:$CENTRAL/ovnsb_db.sock
}

# fabric COMMAND...: runs a tool or function on the fabric.
fabric() (
    use_lab "$SET/fabric"
    "$@"
)

# on_each_node FUNCTION ARGS...: runs it for all nodes at once.
on_each_node() {
    local node pid rc=0
    local -a pids=()
    for node in "${SET_NODES[@]}"; do
        (
            trap - EXIT
            use_node "$node"
            "$@"
        ) &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || rc=1
    done
    return "$rc"
}

# --- interfaces ------------------------------------------------------------

# add_port BRIDGE INTERFACE ROLE LABEL WORDS...: adds an interface that records what is
# sent to it; WORDS go to `set Interface`. The role is what is at its other end: edge (a
# VM, a pod or another end point), uplink (a provider network), underlay, host (the node
# itself), namespace (a device of a network namespace). The label is the name of the interface
# in the list of packets.
add_port() {
    local bridge=$1 interface=$2 role=$3 label=$4
    shift 4
    ovs-vsctl -- --may-exist add-port "$bridge" "$interface" -- set Interface "$interface" \
        options:tx_pcap="$LAB/pcap/$interface.pcap" "$@"
    printf '%s %s %s %s %s\n' "$bridge" "$interface" "$(ofport "$interface")" "$role" "$label" >>"$LAB/ports"
}

# add_local BRIDGE MAC [ROLE]: makes a bridge's own interface record what is sent to the node.
add_local() {
    local role=${3-host}
    ovs-vsctl set Bridge "$1" other_config:hwaddr="\"$2\"" \
        -- set Interface "$1" options:tx_pcap="$LAB/pcap/$1.pcap"
    printf '%s %s %s %s %s\n' "$1" "$1" LOCAL "$role" "$NODE:$1" >>"$LAB/ports"
}

# add_wire BRIDGE INTERFACE ROLE WORDS...: adds an interface whose other end is on the fabric.
add_wire() {
    local bridge=$1 interface=$2 role=$3
    shift 3
    add_port "$bridge" "$interface" "$role" "$NODE:$interface" \
        options:stream="unix:$SET/wires/$NODE-$interface.sock" "$@"
}

# fabric_wire NETWORK NODE INTERFACE: adds the other end.
fabric_wire() {
    fabric ovs-vsctl -- add-port "$1" "$2-$3" -- set Interface "$2-$3" \
        options:pstream="punix:$SET/wires/$2-$3.sock"
}

# fabric_outside NETWORK INTERFACE WORDS...: adds an interface to which hosts outside are
# connected.
fabric_outside() {
    NODE=fabric fabric add_port "$1" "$2" edge "$2" "${@:3}"
}

# take_down INTERFACE: as an administrator takes a device down.
take_down() { ovs-appctl netdev-dummy/set-admin-state "$1" down >/dev/null; }

is_wired() { [[ $(ovs-appctl netdev-dummy/conn-state "$1") == *': connected' ]]; }

# add_bridge BRIDGE WORDS...: adds a bridge; WORDS go to `set Bridge`. Bridges that one transaction adds have numbers in
# the datapath by chance, and a bridge without hwaddr a MAC by chance, from which its datapath id follows.
add_bridge() {
    ovs-vsctl add-br "$1" -- set Bridge "$1" datapath_type=system other_config:hwaddr="\"$(made_mac "$TOPO_HOST $1")\"" "${@:2}"
}

# add_underlay BRIDGE INTERFACE IP/LENGTH MAC: the bridge through which tunnels leave; the
# address is on the bridge's own interface. The dummy device answers ARP for it.
add_underlay() {
    local bridge=$1 interface=$2 address=$3 mac=$4
    add_bridge "$bridge" other_config:mac-aging-time=3600
    add_local "$bridge" "$mac" underlay
    add_wire "$bridge" "$interface" underlay
    tunnel_address "$bridge" "$address"
}

# tunnel_address BRIDGE IP/LENGTH: gives a bridge's own interface an address.
tunnel_address() {
    local bridge=$1 address=$2 kind=ip4addr length=32
    if [[ $address == *:* ]]; then
        kind=ip6addr length=128
    fi
    ovs-appctl netdev-dummy/$kind "$bridge" "$address" >/dev/null
    ovs-appctl ovs/route/add "$address" "$bridge" >/dev/null
    # As ovs/route/show prints the address of a device of the kernel.
    printf 'Cached: %s/%s dev %s SRC %s local\n' "${address%/*}" $length "$bridge" "${address%/*}" \
        >>"$LAB/local-routes"
}

# meet BRIDGE IP MAC: makes the address of another tunnel end known, as ARP or ND does.
meet() { ovs-appctl tnl/neigh/set "$1" "$2" "$3" >/dev/null 2>&1 || ovs-appctl tnl/arp/set "$1" "$2" "$3" >/dev/null; }

# --- up, capture, down -------------------------------------------------------

start_node() {
    mkdir -p "$LAB"/{ovs,ovn,etc,pcap}
    start_ovs
    node_switch
    keep_connections
    set_kernel_features
}

# The interfaces of the nodes connect to those of the fabric.
start_fabric() {
    local network
    mkdir -p "$SET"/fabric/{ovs,ovn,etc,pcap}
    TOPO_HOST=fabric
    TOPO_SYSTEM_ID=fabric
    fabric start_ovs
    for network in "${SET_NETWORKS[@]}"; do
        fabric add_bridge "$network" other_config:mac-aging-time=3600
    done
    set_fabric
}

start_set_central() {
    mkdir -p "$SET"/central/{ovn,etc}
    use_lab "$SET/central"
    start_databases
}

start_node_controller() {
    if [[ $SET_CENTRAL == each ]]; then
        start_databases
    fi
    start_controller
}

# start_set_again lets all of OVN begin with rows of fixed UUIDs.
start_set_again() {
    on_each_node await_node
    on_each_node forget_node
    if [[ $SET_CENTRAL == one ]]; then
        (
            use_lab "$SET/central"
            renew_central
        )
    fi
    on_each_node renew_node
}

renew_central() {
    stop_northd
    fix_southbound
    start_northd
}

renew_node() {
    [[ $SET_CENTRAL == one ]] || renew_central
    start_controller
}

# start_networks, stop_networks: make what the interfaces are in. Dummies need nothing.
start_networks() { :; }
stop_networks() { :; }

raise_set() {
    [[ $SET_NAMESPACES == no ]] || prepare_namespaces
    start_networks
    start_fabric
    [[ $SET_CENTRAL != one ]] || (start_set_central)
    on_each_node start_node
    if [[ $SET_CENTRAL != none ]]; then
        on_each_node start_node_controller
        (
            [[ $SET_CENTRAL != one ]] || use_lab "$SET/central"
            use_central
            set_logical
            [[ $SET_CENTRAL != one ]] || {
                publish_northbound
                wait_for_sync
            }
        )
        start_set_again
    fi
    on_each_node finish_node
    list_ports >"$SET/ports"
}

# Conntrack forgets UDP and ICMP after 30 seconds: too soon for the packets that follow a
# capture on a busy machine.
keep_connections() {
    local zone timeout
    local -a policy=() words=()
    for timeout in tcp_syn_sent tcp_syn_recv udp_first udp_single udp_multiple icmp_first icmp_reply; do
        policy+=("$timeout=3600")
    done
    for zone in {0..99} "${SET_ZONES[@]}"; do
        words+=(-- add-zone-tp system zone="$zone" "${policy[@]}")
    done
    ovs-vsctl -- --id=@datapath create Datapath datapath_version=lab -- set Open_vSwitch . datapaths:system=@datapath >/dev/null
    ovs-vsctl "${words[@]}"
}

# An interface that ovn-controller has not claimed has no key ovn-installed.
has_installed_all() {
    local ids
    ids=$(ovs-vsctl --bare --columns=external_ids list Interface) || return 1
    ! grep 'iface-id=' <<<"$ids" | grep -qv 'ovn-installed=true'
}

# An ovn-controller claims a gateway port once it has heard of it, and answers for it once it
# has heard that it has claimed it.
has_gateways() {
    local unclaimed
    unclaimed=$(ovn-sbctl --bare --columns=_uuid find Port_Binding type=chassisredirect 'chassis=[]') || return 1
    [[ -z $unclaimed ]]
}

wait_for_sync() { ovn-nbctl --timeout=$((60 * LAB_PATIENCE)) --wait=hv sync; }

# await_node waits until OVN has done all that it does on a node.
await_node() {
    [[ $SET_CENTRAL == one ]] || wait_for_sync
    wait_for "ovn-controller to install every port's flows" 40 has_installed_all
    wait_for "a chassis to claim every gateway port" 20 has_gateways
    wait_for_sync
}

# has_old_flows: whether each flow of the integration bridge is four seconds old. One that is newer may have been on its way
# when its database was read, and nothing can be said of it.
has_old_flows() {
    ovs-ofctl -O OpenFlow15 dump-flows br-int | awk -F 'duration=' 'NF > 1 && $2 + 0 < 4 { young = 1 } END { exit young }'
}

finish_node() {
    local interface
    [[ $SET_CENTRAL == none ]] || {
        await_node
        wait_for "flows that are no longer new" 60 has_old_flows
    }
    while read -r _ interface _; do
        [[ -z $(ovs-vsctl --bare get Interface "$interface" options:stream 2>/dev/null) ]] ||
            wait_for "the wire of $interface" 20 is_wired "$interface"
    done <"$LAB/ports"
    node_finish
}

list_ports() {
    local node
    for node in "${SET_NODES[@]}"; do
        sed "s/^/$node /" "$SET/nodes/$node/ports"
    done
    sed "s/^/fabric /" "$SET/fabric/ports"
}

stop_set() {
    local dir rc=0
    for dir in "$SET"/nodes/*/ "$SET/fabric/" "$SET/central/"; do
        [[ -d $dir ]] || continue
        use_lab "${dir%/}"
        stop_daemons || rc=1
    done
    # If `lab set-up` was killed, a daemon can still be starting, without a pid file.
    sweep TERM
    wait_for "the last daemons to end" 5 has_no_process || {
        sweep KILL
        wait_for "the last daemons to end" 5 has_no_process || rc=1
    }
    stop_networks || rc=1
    return "$rc"
}

# set_processes: prints the ids of processes whose pid file is below $SET.
set_processes() {
    local file argument
    local -a arguments
    for file in /proc/[0-9]*/cmdline; do
        { mapfile -t -d '' arguments <"$file"; } 2>/dev/null || continue
        for argument in "${arguments[@]}"; do
            if [[ $argument == --pidfile="$SET"/* ]]; then
                file=${file#/proc/}
                printf '%s\n' "${file%/cmdline}"
            fi
        done
    done
}

has_no_process() { [[ -z $(set_processes) ]]; }

sweep() {
    local pid
    while read -r pid; do
        kill -"$1" "$pid" 2>/dev/null || true
    done < <(set_processes)
}

# capture_set OUTDIR: records each node into OUTDIR/nodes/NODE.
capture_set() {
    local out=$1 db node
    mkdir -p "$out"
    cp "$SET/ports" "$out/ports"
    for node in "${SET_NODES[@]}"; do
        mkdir -p "$out/nodes/$node"
    done
    # One state of the databases for all nodes.
    if [[ $SET_CENTRAL == one ]]; then
        mkdir -p "$out/databases"
        for db in nb sb; do
            cp "$SET/central/ovn/ovn${db}_db.db" "$out/databases/"
        done
        DATABASES=$out/databases
    fi
    on_each_node capture_node "$out"
}

capture_node() {
    local out=$1/nodes/$NODE
    capture "$out"
    ovs-appctl dpif/show >"$out/dpif.show"
    [[ $SET_NAMESPACES == no ]] || record_namespaces "$out"
    [[ $SET_CENTRAL == none ]] ||
        ovn-appctl -t "$LAB/ovn/ovn-controller.$(<"$LAB/ovn/ovn-controller.pid").ctl" ct-zone-list >"$out/ct-zone-list"
}
