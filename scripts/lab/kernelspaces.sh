# shellcheck shell=bash
# Network namespaces of nodes on the kernel's datapath: what is different from namespaces.sh, which
# is loaded before.
#
# A namespace has no name here either: the relay is in it, and moves nothing. Its devices are
# internal ports of Open vSwitch, which are moved into it, as neutron's agents do. The node's own
# namespace is that of its ovs-vswitchd. What sends packets watches the devices
# (test/oracle/sets/devices).

prepare_namespaces() {
    local node missing
    missing=$(modprobe --all vxlan veth bridge br_netfilter nf_tables nft_compat nf_conntrack_netlink \
        ip_set_hash_net xt_set xt_physdev xt_CT xt_connmark xt_mark xt_multiport xt_nat xt_REDIRECT xt_state 2>&1) ||
        die "the kernel lacks modules for network namespaces: $missing"
    [[ -n ${LAB_RELAY-} ]] || die "LAB_RELAY names no program: build test/oracle/sets/relay before the guest boots"
    cp "$LAB_RELAY" "$SET/relay"
    for node in "${SET_NODES[@]}"; do
        mkdir -p "$SET/nodes/$node/namespaces/$OWN"
    done
}

start_namespace() {
    local name=$1 word
    local -a options=()
    shift
    for word; do
        if [[ $name == "$OWN" ]]; then
            in_namespace "$name" ip tuntap add dev "$word" mode tap
        elif [[ $word == --* ]]; then
            options+=("$word")
        fi
    done
    [[ $name == "$OWN" ]] || keep_namespace "$name" "${options[@]}"
}

join_devices() { :; }

add_namespace_port() {
    local bridge=$1 device=$2 namespace=$3
    shift 3
    ovs-vsctl -- add-port "$bridge" "$device" -- set Interface "$device" type=internal "$@"
    [[ $namespace == "$OWN" ]] || "${ENTER[@]}" ip link set "$device" netns "$(namespace_path "$namespace")"
    list_namespace_port "$bridge" "$device" "$namespace"
}
