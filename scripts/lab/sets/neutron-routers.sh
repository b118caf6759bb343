# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by agent.sh, l3agent.sh, set.sh and lib.sh
# An ML2/OVS cloud whose routers are real network namespaces of the nodes' kernel, with the
# settings, routes and rules of neutron's L3 agent. Their devices are ports of br-int. It needs
# root, because iptables, conntrack and taps are the kernel's.
#
# Router r1 joins networks 201 and 202 (IPv4 and IPv6) with the flat external network. Router r2
# has no gateway; it joins 203 and 204, and 202, which is in another address scope.

# shellcheck source=scripts/lab/agent.sh
. "$HERE/agent.sh"
# shellcheck source=scripts/lab/namespaces.sh
. "$HERE/namespaces.sh"
# shellcheck source=scripts/lab/l3agent.sh
. "$HERE/l3agent.sh"

SET_SUMMARY='ML2/OVS with its routers: network namespaces of the kernel, as root'
SET_NODES=(compute1 compute2 network)
SET_NETWORKS=(underlay physnet1)
SET_CENTRAL=none
SET_NAMESPACES=yes
TUNNELS=(201 202 203 204)
UNKNOWN=(a3)

declare -gA OCTET=([compute1]=11 [compute2]=12 [network]=13)
declare -gA LOCAL_VLAN=()

number_vlans() {
    local node network vlan=1
    for node in "${SET_NODES[@]}"; do
        for network in "${TUNNELS[@]}" flat; do
            LOCAL_VLAN[$node:$network]=$((vlan++))
        done
    done
}
number_vlans

# name, node, network, MAC, address, firewall or not
PORTS=(
    'a1 compute1 201 fa:16:3e:c9:00:11 10.201.0.11 firewall'
    'a2 compute2 201 fa:16:3e:c9:00:12 10.201.0.12 firewall'
    'a3 compute1 201 fa:16:3e:c9:00:13 10.201.0.13 open'
    'b1 compute1 202 fa:16:3e:ca:00:11 10.202.0.11 firewall'
    'b2 compute2 202 fa:16:3e:ca:00:12 10.202.0.12 firewall'
    'c1 compute1 203 fa:16:3e:cb:00:11 10.203.0.11 firewall'
    'd1 compute2 204 fa:16:3e:cc:00:11 10.204.0.11 firewall'
)

# The address scope of network 202 on router r2.
OTHER_SCOPE=0x4010000/0xffff0000

EXTERNAL_GATEWAY=203.0.113.1
EXTERNAL_GATEWAY6=2001:db8:113::1

node_switch() {
    agent_switch
    [[ $NODE != network ]] || {
        router_r1
        router_r2
    }
}

node_finish() {
    agent_flows
    settle_namespaces
}

router() { printf 'qrouter-%s' "$(made_uuid "router-$1")"; }

# add_device NAME NETWORK MAC NAMESPACE: adds the port of a router's device.
add_device() {
    local device
    device=$(port_name "$1")
    add_namespace_port br-int "$device" "$4"
    bind_port "$1" "$device" "$2" "$3"
}

router_r1() {
    local namespace a b out
    namespace=$(router r1)
    a=$(port_name qr.r1.201)
    b=$(port_name qr.r1.202)
    out=$(port_name qg.r1)
    start_namespace "$namespace" --listen=$METADATA_PORT "$a" "$b" "$out"
    forward_in "$namespace"
    add_device qr.r1.201 201 fa:16:3e:c9:00:01 "$namespace"
    add_device qr.r1.202 202 fa:16:3e:ca:00:01 "$namespace"
    add_device qg.r1 flat fa:16:3e:aa:00:05 "$namespace"
    local -a INSIDE=("$a=$NO_SCOPE" "$b=$NO_SCOPE") FLOATING=(203.0.113.21=10.201.0.11 203.0.113.22=10.202.0.12)
    local OUTSIDE=$out OUTSIDE_IP=203.0.113.5
    filter "$namespace"
    plug "$namespace" "$a" fa:16:3e:c9:00:01 1430 10.201.0.1/24 fd00:201::1/64
    plug "$namespace" "$b" fa:16:3e:ca:00:01 1430 10.202.0.1/24 fd00:202::1/64
    plug "$namespace" "$out" fa:16:3e:aa:00:05 1500 203.0.113.5/24 2001:db8:113::5/64 203.0.113.21/32 203.0.113.22/32
    in_namespace "$namespace" ip -batch - <<EOT
route add default via $EXTERNAL_GATEWAY dev $out
route add default via $EXTERNAL_GATEWAY6 dev $out
route add 10.99.0.0/24 via 10.201.0.13
route add 198.51.100.0/24 via 203.0.113.9
EOT
}

router_r2() {
    local namespace c d b
    namespace=$(router r2)
    c=$(port_name qr.r2.203)
    d=$(port_name qr.r2.204)
    b=$(port_name qr.r2.202)
    start_namespace "$namespace" --listen=$METADATA_PORT "$c" "$d" "$b"
    forward_in "$namespace"
    add_device qr.r2.203 203 fa:16:3e:cb:00:01 "$namespace"
    add_device qr.r2.204 204 fa:16:3e:cc:00:01 "$namespace"
    add_device qr.r2.202 202 fa:16:3e:ca:00:02 "$namespace"
    local -a INSIDE=("$c=$NO_SCOPE" "$d=$NO_SCOPE" "$b=$OTHER_SCOPE") FLOATING=()
    local OUTSIDE='' OUTSIDE_IP=''
    filter "$namespace"
    plug "$namespace" "$c" fa:16:3e:cb:00:01 1430 10.203.0.1/24
    plug "$namespace" "$d" fa:16:3e:cc:00:01 1430 10.204.0.1/24
    plug "$namespace" "$b" fa:16:3e:ca:00:02 1430 10.202.0.254/24
}
