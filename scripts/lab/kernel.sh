# shellcheck shell=bash
# Sets on the kernel's datapath: what is different from set.sh, which is loaded before.
#
# Each node, and the fabric, has a network namespace with its name, and in it its own
# datapath. An edge is a tap, as of a VM: what reads its other end is the program that
# sends packets (test/oracle/sets/devices). Wires are veth pairs.

# What the underlay's devices on the nodes take; a set can choose another size. The
# fabric's ends take more, so that the nodes' decide.
UNDERLAY_MTU=1500
FABRIC_MTU=9216

# QEMU emulates the processor, and the machine may be busy.
LAB_PATIENCE=10

# Each command of a capture takes a third of a second there.
TOPO_VERSIONS=(OpenFlow15)

start_networks() {
    local node timeout
    modprobe --all openvswitch vport-geneve tun || die "the kernel has no Open vSwitch: scripts/kernel/guest boots one that has"
    for node in fabric "${SET_NODES[@]}"; do
        ip netns add "$node"
        in_network "$node" ip link set lo up
        set_kernel "$node" net/ipv6/conf/default/disable_ipv6 1
        # Fragments and connections live as long as a slow machine needs: conntrack would
        # forget UDP and ICMP after 30 seconds, before the packets that follow a capture.
        set_kernel "$node" net/ipv4/ipfrag_time 600
        for timeout in tcp_timeout_syn_sent tcp_timeout_syn_recv udp_timeout udp_timeout_stream icmp_timeout icmpv6_timeout; do
            set_kernel "$node" "net/netfilter/nf_conntrack_$timeout" 3600
        done
    done
}

set_kernel() { in_network "$1" tee "/proc/sys/$2" <<<"$3" >/dev/null; }

keep_connections() { :; }

stop_networks() {
    local node rc=0
    for node in fabric "${SET_NODES[@]}"; do
        ip netns delete "$node" || rc=1
    done
    return "$rc"
}

in_network() { # NODE COMMAND...
    local node=$1
    shift
    nsenter --net="/run/netns/$node" "$@"
}

# The kernel has its features.
set_kernel_features() { :; }

# A device that is there already is the end of a wire.
add_port() {
    local bridge=$1 interface=$2 role=$3 label=$4
    shift 4
    "${ENTER[@]}" ip link show "$interface" >/dev/null 2>&1 ||
        "${ENTER[@]}" ip tuntap add dev "$interface" mode tap
    "${ENTER[@]}" ip link set "$interface" up
    ovs-vsctl -- --may-exist add-port "$bridge" "$interface" ${*:+-- set Interface "$interface" "$@"}
    printf '%s %s %s %s %s\n' "$bridge" "$interface" "$(ofport "$interface")" "$role" "$label" >>"$LAB/ports"
}

add_local() {
    local role=${3-host}
    ovs-vsctl set Bridge "$1" other_config:hwaddr="\"$2\""
    "${ENTER[@]}" ip link set "$1" up
    printf '%s %s %s %s %s\n' "$1" "$1" LOCAL "$role" "$NODE:$1" >>"$LAB/ports"
}

add_wire() {
    local bridge=$1 interface=$2 role=$3
    shift 3
    add_port "$bridge" "$interface" "$role" "$NODE:$interface" "$@"
}

fabric_wire() {
    ip link add "$2-$3" netns fabric mtu "$FABRIC_MTU" type veth peer name "$3" netns "$2" mtu "$UNDERLAY_MTU"
    in_network fabric ip link set "$2-$3" up
    fabric ovs-vsctl add-port "$1" "$2-$3"
}

# add_device INTERFACE IP/LENGTH MAC: a device of the underlay that is on no bridge.
add_device() {
    "${ENTER[@]}" ip link set "$1" address "$3" up
    "${ENTER[@]}" ip address add "$2" dev "$1"
    printf -- '- %s - underlay %s\n' "$1" "$NODE:$1" >>"$LAB/ports"
}

take_down() { "${ENTER[@]}" ip link set "$1" down; }

# Only devices with an address of IPv6 have IPv6.
tunnel_address() {
    local -a words=()
    if [[ $2 == *:* ]]; then
        "${ENTER[@]}" ip link set "$1" addrgenmode none
        set_kernel "$NODE" "net/ipv6/conf/$1/disable_ipv6" 0
        words=(nodad)
    fi
    "${ENTER[@]}" ip address add "$2" dev "$1" "${words[@]}"
}

meet() { "${ENTER[@]}" ip neigh replace "$2" lladdr "$3" dev "$1" nud permanent; }
