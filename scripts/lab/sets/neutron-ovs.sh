# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by set.sh and lib.sh
# An ML2/OVS cloud: two computes and a network node, with neutron's openvswitch firewall
# on br-int and tunnels with known and learned addresses on br-tun. Network 101 is VXLAN
# over IPv6, network 120 a VLAN of the provider, and the external network flat. Each node
# has its own local VLANs. Routers are namespaces of the network node: packets for them
# come out of its interfaces.

# shellcheck source=scripts/lab/agent.sh
. "$HERE/agent.sh"
SET_SUMMARY='ML2/OVS: two computes and a network node, VXLAN over IPv6, provider VLAN'
SET_NODES=(compute1 compute2 network)
SET_NETWORKS=(underlay physnet1)
SET_CENTRAL=none
TUNNELS=(101)
VLANS=(120)
UNKNOWN=(vm6 dhcp qr)

declare -gA OCTET=([compute1]=11 [compute2]=12 [network]=13)
# The local VLANs of the networks, by node.
declare -gA LOCAL_VLAN=(
    [compute1:101]=1 [compute2:101]=3 [network:101]=2
    [compute1:120]=4 [compute2:120]=5 [network:120]=6
    [network:flat]=9
)

# name, node, network, MAC, address, firewall or not
PORTS=(
    'vm1 compute1 101 fa:16:3e:65:00:11 10.101.0.11 firewall'
    'vm2 compute2 101 fa:16:3e:65:00:12 10.101.0.12 firewall'
    'vm3 compute1 101 fa:16:3e:65:00:13 10.101.0.13 firewall'
    'vm6 compute2 101 fa:16:3e:65:00:16 10.101.0.16 open'
    'vm4 compute1 120 fa:16:3e:78:00:11 10.120.0.11 firewall'
    'vm5 compute2 120 fa:16:3e:78:00:12 10.120.0.12 firewall'
    'dhcp network 101 fa:16:3e:65:00:02 10.101.0.2 open'
    'qr network 101 fa:16:3e:65:00:01 10.101.0.1 open'
    'qg network flat fa:16:3e:aa:00:05 203.0.113.5 open'
)

node_switch() { agent_switch; }

node_finish() { agent_flows; }

more_flows() {
    [[ $NODE != compute1 ]] || remote_group "$(ofport "$(port_name vm1)")" "${LOCAL_VLAN[compute1:101]}"
}

# vm1 also takes http from members of a remote group, by a conjunctive match.
remote_group() {
    local reg="reg5=$1" member
    for member in 10.101.0.12 10.101.0.16; do
        printf 'table=82,priority=73,ct_state=+est-rel-rpl,ip,reg6=%s,nw_src=%s,actions=conjunction(16,1/2)\n' "$2" "$member"
        printf 'table=82,priority=73,ct_state=+new-est,ip,reg6=%s,nw_src=%s,actions=conjunction(17,1/2)\n' "$2" "$member"
    done
    printf 'table=82,priority=73,ct_state=+est-rel-rpl,tcp,%s,tp_dst=80,actions=conjunction(16,2/2)\n' "$reg"
    printf 'table=82,priority=73,ct_state=+new-est,tcp,%s,tp_dst=80,actions=conjunction(17,2/2)\n' "$reg"
    printf 'table=82,priority=73,conj_id=16,ct_state=+est-rel-rpl,ip,%s,actions=load:0x10->NXM_NX_REG7[],output:%s\n' "$reg" "$1"
    printf 'table=82,priority=73,conj_id=17,ct_state=+new-est,ip,%s,actions=load:0x11->NXM_NX_REG7[],ct(commit,zone=NXM_NX_REG6[0..15]),output:%s,resubmit(,92)\n' "$reg" "$1"
}
