# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by agent.sh, l3agent.sh, set.sh and lib.sh
# An ML2/OVS cloud whose routers are real network namespaces of the nodes' kernel, with the
# settings, routes and rules of neutron's L3 agent. Their devices are ports of br-int. It needs
# root, because iptables, conntrack and taps are the kernel's.
#
# Router r1 joins networks 201 and 202 (IPv4 and IPv6) with the flat external network. Router r2
# has no gateway; it joins 203 and 204, and 202, which is in another address scope. Router r3 is
# distributed: it joins 205 and 206 on both computes, has a floating IP on each, and its SNAT is on
# the node network. Router r4 of network 207 is highly available: active on network, standby on
# network2.

# shellcheck source=scripts/lab/agent.sh
. "$HERE/agent.sh"
# shellcheck source=scripts/lab/dvr.sh
. "$HERE/dvr.sh"
# shellcheck source=scripts/lab/namespaces.sh
. "$HERE/namespaces.sh"
# shellcheck source=scripts/lab/l3agent.sh
. "$HERE/l3agent.sh"

SET_SUMMARY='ML2/OVS with its routers: network namespaces of the kernel, as root'
SET_NODES=(compute1 compute2 network network2)
SET_NETWORKS=(underlay physnet1)
SET_CENTRAL=none
SET_NAMESPACES=yes
TUNNELS=(201 202 203 204 205 206 207 208)
UNKNOWN=(a3)

declare -gA OCTET=([compute1]=11 [compute2]=12 [network]=13 [network2]=14)
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
    'e1 compute1 205 fa:16:3e:cd:00:11 10.205.0.11 firewall'
    'e2 compute2 205 fa:16:3e:cd:00:12 10.205.0.12 firewall'
    'f1 compute1 206 fa:16:3e:ce:00:11 10.206.0.11 firewall'
    'f2 compute2 206 fa:16:3e:ce:00:12 10.206.0.12 firewall'
    'h1 compute1 207 fa:16:3e:cf:00:11 10.207.0.11 firewall'
    'h2 compute2 207 fa:16:3e:cf:00:12 10.207.0.12 firewall'
    'k1 network2 207 fa:16:3e:cf:00:13 10.207.0.13 open'
    'peer compute1 208 fa:16:3e:d0:00:09 169.254.192.9 open'
)

declare -gA DVR_MAC=(
    [compute1]=fa:16:3f:00:00:11 [compute2]=fa:16:3f:00:00:12
    [network]=fa:16:3f:00:00:13 [network2]=fa:16:3f:00:00:14
)
DVR_NODES=(compute1 compute2 network)
DVR_PORTS=(
    'qr.r3.205 205 fa:16:3e:cd:00:01 10.205.0.1'
    'qr.r3.206 206 fa:16:3e:ce:00:01 10.206.0.1'
)
DVR_SNAT=(
    'sg.r3.205 network 205 fa:16:3e:cd:00:03 10.205.0.3'
    'sg.r3.206 network 206 fa:16:3e:ce:00:03 10.206.0.3'
)
POPULATED=("${DVR_SNAT[@]}")

# The floating IPs of router r3 by node, and the address of the node's fip namespace.
declare -gA DVR_FLOATING=([compute1]=203.0.113.31=10.205.0.11 [compute2]=203.0.113.32=10.206.0.12)
declare -gA DVR_GATEWAY=([compute1]=203.0.113.41 [compute2]=203.0.113.42)
declare -gA DVR_PRIORITY=([compute1]=36927 [compute2]=51208)

# The address scope of network 202 on router r2.
OTHER_SCOPE=0x4010000/0xffff0000

EXTERNAL_GATEWAY=203.0.113.1
EXTERNAL_GATEWAY6=2001:db8:113::1

node_switch() {
    agent_switch
    case $NODE in
    network)
        router_r1
        router_r2
        router_r3
        snat_r3
        router_r4 169.254.192.1 active
        ;;
    network2) router_r4 169.254.192.2 standby ;;
    *)
        fip_namespace
        router_r3
        ;;
    esac
}

more_flows() { trusted_flows; }

node_finish() {
    agent_flows
    settle_namespaces
}

router() { printf 'qrouter-%s' "$(made_uuid "router-$1")"; }

# add_device NAME NETWORK MAC NAMESPACE: adds the port of a router's device.
add_device() {
    local device mtu=1430
    device=$(port_name "$1")
    [[ $2 != flat ]] || mtu=1500
    add_namespace_port br-int "$device" "$4" mtu_request=$mtu
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
    local KIND=router OUTSIDE=$out OUTSIDE_IP=203.0.113.5
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
    local KIND=router OUTSIDE='' OUTSIDE_IP=''
    filter "$namespace"
    plug "$namespace" "$c" fa:16:3e:cb:00:01 1430 10.203.0.1/24
    plug "$namespace" "$d" fa:16:3e:cc:00:01 1430 10.204.0.1/24
    plug "$namespace" "$b" fa:16:3e:ca:00:02 1430 10.202.0.254/24
}

external_namespace() { printf 'fip-%s' "$(made_uuid ovs-net-flat)"; }

# fip_namespace: the namespace through which distributed routers of a node reach the external
# network. Its connections are those of the routers.
fip_namespace() {
    local namespace device mac=fa:16:3e:aa:00:${OCTET[$NODE]}
    namespace=$(external_namespace)
    device=$(port_name "fg.$NODE")
    start_namespace "$namespace" "$device"
    forward_in "$namespace"
    in_namespace "$namespace" sysctl -qw net.ipv4.ip_nonlocal_bind=1
    add_device "fg.$NODE" flat "$mac" "$namespace"
    fip_filters | in_namespace "$namespace" iptables-restore
    fip_filters6 | in_namespace "$namespace" ip6tables-restore
    plug "$namespace" "$device" "$mac" 1500 "${DVR_GATEWAY[$NODE]}/24"
    in_namespace "$namespace" sysctl -qw "net.ipv4.neigh.$device.proxy_delay=1" "net.ipv4.conf.$device.proxy_arp=1"
}

router_r3() {
    local namespace a b port name network mac ip outside='' floating=${DVR_FLOATING[$NODE]-}
    namespace=$(router r3)
    a=$(port_name qr.r3.205)
    b=$(port_name qr.r3.206)
    start_namespace "$namespace" --listen=$METADATA_PORT "$a" "$b"
    forward_in "$namespace"
    add_device qr.r3.205 205 fa:16:3e:cd:00:01 "$namespace"
    add_device qr.r3.206 206 fa:16:3e:ce:00:01 "$namespace"
    plug "$namespace" "$a" fa:16:3e:cd:00:01 1430 10.205.0.1/24
    plug "$namespace" "$b" fa:16:3e:ce:00:01 1430 10.206.0.1/24
    for port in "${PORTS[@]}" "${DVR_SNAT[@]}"; do
        read -r name _ network mac ip _ <<<"$port"
        case $network in
        205) in_namespace "$namespace" ip neigh replace "$ip" lladdr "$mac" dev "$a" nud permanent ;;
        206) in_namespace "$namespace" ip neigh replace "$ip" lladdr "$mac" dev "$b" nud permanent ;;
        esac
    done
    in_namespace "$namespace" sysctl -qw net.ipv4.conf.all.send_redirects=0 \
        "net.ipv4.conf.$a.send_redirects=0" "net.ipv4.conf.$b.send_redirects=0"
    redirect_to_snat "$namespace" 10.205.0.1/24 10.205.0.3 "$a"
    redirect_to_snat "$namespace" 10.206.0.1/24 10.206.0.3 "$b"
    if [[ -n $floating ]]; then
        outside=rfp-$(made_uuid router-r3 | cut -c 1-10)
        link_to_fip "$namespace" "$outside"
        floating_to_fip "$namespace" "${floating%%=*}" "${floating#*=}"
    fi
    local -a INSIDE=("$a=$NO_SCOPE" "$b=$NO_SCOPE") FLOATING=(${floating:+"$floating"})
    local KIND=distributed OUTSIDE=$outside OUTSIDE_IP=''
    filter "$namespace"
}

# number_of ADDRESS: prints an address of IPv4 as a number, which the agent takes as the number
# of a table and the priority of its rule.
number_of() { printf '%d' "$(hex_ip "$1")"; }

# redirect_to_snat NAMESPACE ADDRESS/LENGTH GATEWAY DEVICE
redirect_to_snat() {
    local table
    table=$(number_of "${2%/*}")
    in_namespace "$1" ip route add default via "$3" dev "$4" table "$table"
    in_namespace "$1" ip rule add from "$2" table "$table" priority "$table"
}

# The link-local addresses of router r3 and of the fip namespace.
ROUTER_LINK=169.254.106.114
FIP_LINK=169.254.106.115

# link_to_fip NAMESPACE DEVICE: the veth pair between a router and the fip namespace.
link_to_fip() {
    local namespace=$1 inside=$2 outside=fpr-${2#rfp-} fip table
    fip=$(external_namespace)
    table=$(number_of $FIP_LINK)
    ip link add "$inside" address fe:16:3e:00:00:01 mtu 1500 netns "$(namespace_path "$namespace")" \
        type veth peer name "$outside" address fe:16:3e:00:00:02 mtu 1500 netns "$(namespace_path "$fip")"
    in_namespace "$namespace" ip -batch - <<EOT
link set $inside up
address add $ROUTER_LINK/31 dev $inside
neigh replace $FIP_LINK lladdr fe:16:3e:00:00:02 dev $inside nud permanent
route add default via $FIP_LINK dev $inside table 16
EOT
    in_namespace "$fip" ip -batch - <<EOT
link set $outside up
address add $FIP_LINK/31 dev $outside
neigh replace $ROUTER_LINK lladdr fe:16:3e:00:00:01 dev $outside nud permanent
route add default via $EXTERNAL_GATEWAY dev $(port_name "fg.$NODE") table $table
rule add from all iif $outside table $table priority $table
EOT
}

# floating_to_fip NAMESPACE FLOATING FIXED
floating_to_fip() {
    in_namespace "$1" ip rule add from "$3" table 16 priority "${DVR_PRIORITY[$NODE]}"
    in_namespace "$(external_namespace)" ip route add "$2/32" via $ROUTER_LINK
}

snat_r3() {
    local namespace a b out
    namespace=snat-$(made_uuid router-r3)
    a=$(port_name sg.r3.205)
    b=$(port_name sg.r3.206)
    out=$(port_name qg.r3)
    start_namespace "$namespace" "$a" "$b" "$out"
    forward_in "$namespace"
    in_namespace "$namespace" sysctl -qw net.ipv4.ip_nonlocal_bind=1 net.netfilter.nf_conntrack_tcp_loose=0
    add_device sg.r3.205 205 fa:16:3e:cd:00:03 "$namespace"
    add_device sg.r3.206 206 fa:16:3e:ce:00:03 "$namespace"
    add_device qg.r3 flat fa:16:3e:aa:00:06 "$namespace"
    local -a INSIDE=("$a=$NO_SCOPE" "$b=$NO_SCOPE") FLOATING=()
    local KIND=snat OUTSIDE=$out OUTSIDE_IP=203.0.113.6
    filter "$namespace"
    plug "$namespace" "$a" fa:16:3e:cd:00:03 1430 10.205.0.3/24
    plug "$namespace" "$b" fa:16:3e:ce:00:03 1430 10.206.0.3/24
    plug "$namespace" "$out" fa:16:3e:aa:00:06 1500 203.0.113.6/24
    in_namespace "$namespace" ip route add default via $EXTERNAL_GATEWAY dev "$out"
}

# router_r4 ADDRESS STATE: keepalived gives the addresses to the active one; the standby has only
# the address of its device in the network of the routers, and its device outside is down.
router_r4() {
    local namespace a out ha device
    namespace=$(router r4)
    a=$(port_name qr.r4.207)
    out=$(port_name qg.r4)
    ha=$(port_name "ha.r4.$NODE")
    start_namespace "$namespace" --listen=$METADATA_PORT "$a" "$out" "$ha"
    forward_in "$namespace"
    add_device qr.r4.207 207 fa:16:3e:cf:00:01 "$namespace"
    add_device qg.r4 flat fa:16:3e:aa:00:07 "$namespace"
    add_device "ha.r4.$NODE" 208 "fa:16:3e:d0:00:${OCTET[$NODE]}" "$namespace"
    for device in "$a" "$out" "$ha"; do
        in_namespace "$namespace" ip link set "$device" addrgenmode none
    done
    local -a INSIDE=("$a=$NO_SCOPE") FLOATING=(203.0.113.24=10.207.0.11)
    local KIND=router OUTSIDE=$out OUTSIDE_IP=203.0.113.7
    filter "$namespace"
    plug "$namespace" "$ha" "fa:16:3e:d0:00:${OCTET[$NODE]}" 1430 "$1/18"
    plug "$namespace" "$a" fa:16:3e:cf:00:01 1430
    plug "$namespace" "$out" fa:16:3e:aa:00:07 1500
    if [[ $2 == standby ]]; then
        in_namespace "$namespace" ip link set "$out" down
        return
    fi
    in_namespace "$namespace" ip -batch - <<EOT
address add 169.254.0.1/24 dev $ha
address add 10.207.0.1/24 dev $a
address add 203.0.113.7/24 dev $out
address add 203.0.113.24/32 dev $out
address add fe80::f816:3eff:fecf:1/64 dev $a scope link
route add default via $EXTERNAL_GATEWAY dev $out proto keepalived
EOT
}
