# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by agent.sh, hybrid.sh, set.sh and lib.sh
# Two computes of ML2/OVS with the firewall iptables_hybrid: security groups are rules of iptables
# in the node's own network namespace, for Linux bridges between VMs and br-int.

# shellcheck source=scripts/lab/agent.sh
. "$HERE/agent.sh"
# shellcheck source=scripts/lab/namespaces.sh
. "$HERE/namespaces.sh"
# shellcheck source=scripts/lab/hybrid.sh
. "$HERE/hybrid.sh"

SET_SUMMARY='ML2/OVS with security groups as iptables of Linux bridges, as root'
SET_NODES=(compute1 compute2)
SET_NETWORKS=(underlay physnet1)
SET_CENTRAL=none
SET_NAMESPACES=yes
TUNNELS=(211)
GROUP=NIPv4d2a1d7a6-5a3e-4c1b-8

declare -gA OCTET=([compute1]=11 [compute2]=12)
declare -gA LOCAL_VLAN=([compute1:211]=1 [compute2:211]=2)

# What is not behind a Linux bridge: a DHCP server.
PORTS=('dhcp compute2 211 fa:16:3e:d3:00:02 10.211.0.2 open')

# name, node, MAC, address
HYBRID=(
    'g1 compute1 fa:16:3e:d3:00:11 10.211.0.11'
    'g2 compute1 fa:16:3e:d3:00:12 10.211.0.12'
    'g3 compute2 fa:16:3e:d3:00:13 10.211.0.13'
)
POPULATED=(
    'g1 compute1 211 fa:16:3e:d3:00:11 10.211.0.11'
    'g2 compute1 211 fa:16:3e:d3:00:12 10.211.0.12'
    'g3 compute2 211 fa:16:3e:d3:00:13 10.211.0.13'
)

id_of() { made_uuid "ovs-port-$1" | cut -c 1-11; }

node_switch() {
    local vm name node mac ip id zone=4097
    local -a taps=() joined=()
    agent_switch
    VMS=()
    for vm in "${HYBRID[@]}"; do
        read -r name node mac ip <<<"$vm"
        [[ $node == "$NODE" ]] || continue
        id=$(id_of "$name")
        taps+=("tap$id")
        joined+=("qvo$id")
        VMS+=("$id tap$id $mac $ip $((zone++))")
        printf -- '- %s - edge %s\n' "tap$id" "$name" >>"$LAB/ports"
    done
    start_namespace $OWN "${taps[@]}"
    for vm in "${VMS[@]}"; do
        read -r id _ <<<"$vm"
        hybrid_devices $OWN "$id" "tap$id"
    done
    keep_in $OWN
    printf '%s\n' "create $GROUP hash:net family inet" "add $GROUP 10.211.0.13" | in_namespace $OWN ipset restore
    hybrid_filters | in_namespace $OWN iptables-restore
    join_devices $OWN "${joined[@]}"
    for vm in "${HYBRID[@]}"; do
        read -r name node mac _ <<<"$vm"
        [[ $node == "$NODE" ]] || continue
        id=$(id_of "$name")
        add_namespace_port br-int "qvo$id" $OWN type='""' mtu_request=1430
        bind_port "$name" "qvo$id" 211 "$mac"
    done
}

keep_in() {
    local timeout
    for timeout in tcp_timeout_syn_sent tcp_timeout_syn_recv tcp_timeout_unacknowledged tcp_timeout_max_retrans udp_timeout udp_timeout_stream icmp_timeout; do
        in_namespace "$1" sysctl -qw "net.netfilter.nf_conntrack_$timeout=3600"
    done
}

node_finish() { agent_flows; }
