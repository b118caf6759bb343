# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by set.sh and lib.sh
# For the kernel's datapath: interfaces and an underlay with limits, session affinity,
# fragments, NAT. Networks one and two (IPv4 and IPv6) are on router main, whose gateway
# port is on n2; network one has a security group. The underlay is a device of the kernel
# on no bridge.

SET_SUMMARY='for the kernel datapath: two nodes, MTUs, session affinity, SNAT, DNAT, floating IPs, allow-related ACLs'
SET_NODES=(n1 n2)
SET_NETWORKS=(underlay physnet1)
SET_CENTRAL=one

declare -gA OCTET=([n1]=11 [n2]=12)

# name, network, node, last part of its addresses, MTU of its interface
VMS=(
    'a1 one n1 11 9000'
    'b1 one n2 12 9000'
    'c2 one n2 13 1442'
    'd1 one n1 14 1442'
    'e1 one n1 15 1500'
    's1 two n1 11 1442'
    's2 two n2 12 1442'
)

subnet() {
    case $1 in
    one) echo 192.168.10 fd00:10: 0a:58:00:10:00 ;;
    two) echo 192.168.20 fd00:20: 0a:58:00:20:00 ;;
    esac
}

node_identity() {
    TOPO_HOST=$1
    TOPO_SYSTEM_ID=$1
    TOPO_REMOTE=tcp:192.168.24.10:6642
    UNDERLAY_IP=192.168.24.${OCTET[$1]}
    TOPO_OVS_SETTINGS=(
        external_ids:ovn-remote="\"unix:$SET/central/ovn/ovnsb_db.sock\""
        external_ids:ovn-encap-type=geneve
        external_ids:ovn-encap-ip="$UNDERLAY_IP"
        'external_ids:ovn-bridge-mappings="physnet1:br-ex"'
        external_ids:ovn-openflow-probe-interval=0
        external_ids:ovn-remote-probe-interval=60000
    )
    if [[ $1 == n2 ]]; then
        TOPO_OVS_SETTINGS+=('external_ids:ovn-cms-options="enable-chassis-as-gw"')
    fi
}

set_fabric() {
    local node
    for node in "${SET_NODES[@]}"; do
        fabric_wire underlay "$node" eth0
        fabric_wire physnet1 "$node" eth1
    done
    fabric_outside physnet1 ext0 mtu_request=9000
}

node_switch() {
    local vm name network node octet mtu other
    add_bridge br-int fail_mode=secure other_config:disable-in-band=true
    add_bridge br-ex fail_mode=standalone other_config:mac-aging-time=3600
    take_down br-int
    add_device eth0 "$UNDERLAY_IP/24" "52:54:00:18:00:${OCTET[$NODE]}"
    add_wire br-ex eth1 uplink mtu_request=9000
    for vm in "${VMS[@]}"; do
        read -r name network node octet mtu <<<"$vm"
        [[ $node != "$NODE" ]] ||
            add_port br-int "tap-$name" edge "$name" mtu_request="$mtu" external_ids:iface-id="$name"
    done
    for other in "${SET_NODES[@]}"; do
        [[ $other == "$NODE" ]] ||
            meet eth0 "192.168.24.${OCTET[$other]}" "52:54:00:18:00:${OCTET[$other]}"
    done
}

node_finish() { :; }

set_logical() {
    local NB=()
    nb_networks
    nb_router
    nb_security
    nb_load_balancers
    ovn-nbctl "${NB[@]}" >/dev/null
}

nb_networks() {
    local vm name network node octet v4 v6 mac
    NB+=(-- ls-add one -- ls-add two -- ls-add public
        -- lsp-add public public-net -- lsp-set-type public-net localnet -- lsp-set-addresses public-net unknown
        -- lsp-set-options public-net network_name=physnet1)
    for vm in "${VMS[@]}"; do
        read -r name network node octet _ <<<"$vm"
        read -r v4 v6 mac <<<"$(subnet "$network")"
        NB+=(-- lsp-add "$network" "$name" -- lsp-set-addresses "$name" "$mac:$octet $v4.$octet $v6:$octet"
            -- lsp-set-options "$name" requested-chassis="$node")
    done
}

# add_lrp NETWORK MAC ADDRESSES...
add_lrp() {
    NB+=(-- lrp-add main "main-$1" "${@:2}"
        -- lsp-add "$1" "$1-main" -- lsp-set-type "$1-main" router -- lsp-set-addresses "$1-main" router
        -- lsp-set-options "$1-main" router-port="main-$1" nat-addresses=router)
}

nb_router() {
    NB+=(-- lr-add main -- set Logical_Router main options:always_learn_from_arp_request=false options:dynamic_neigh_routers=true)
    add_lrp one 0a:58:00:10:00:01 192.168.10.1/24 fd00:10::1/64
    add_lrp two 0a:58:00:20:00:01 192.168.20.1/24 fd00:20::1/64
    add_lrp public 0a:58:00:04:00:10 172.24.4.10/24 2001:db8:4::10/64
    # The hosts outside, which the router would have to learn: what ovn-controller learns is
    # lost if it can't write it to the database at once.
    NB+=(-- static-mac-binding-add main-public 172.24.4.1 02:00:00:00:00:fe
        -- static-mac-binding-add main-public 172.24.4.9 02:00:00:00:00:09
        -- static-mac-binding-add main-public 2001:db8:4::1 02:00:00:00:00:f6)
    NB+=(-- lrp-set-gateway-chassis main-public n2 2
        -- set Logical_Router_Port main-public options:gateway_mtu=1400
        -- set Logical_Router_Port main-two options:gateway_mtu=1300
        -- lr-route-add main 0.0.0.0/0 172.24.4.1 main-public
        -- lr-route-add main ::/0 2001:db8:4::1 main-public
        -- lr-nat-add main snat 172.24.4.10 192.168.10.0/24
        -- lr-nat-add main snat 172.24.4.10 192.168.20.0/24
        -- lr-nat-add main snat 2001:db8:4::10 fd00:10::/64
        -- lr-nat-add main dnat 172.24.4.30 192.168.20.11
        -- lr-nat-add main dnat_and_snat 172.24.4.21 192.168.10.12
        -- lr-nat-add main dnat_and_snat 172.24.4.22 192.168.10.11 a1 0a:58:00:04:00:22)
}

nb_security() {
    local rule direction port number=0
    NB+=(-- pg-add group a1 b1 c2 d1 e1)
    for rule in 'from-lport ip4 || ip6' 'to-lport icmp4 || icmp6' \
        'to-lport tcp.dst == {80, 443, 5432}' 'to-lport udp.dst == {53, 5005}'; do
        direction=${rule%% *}
        port=outport
        [[ $direction == to-lport ]] || port=inport
        NB+=(-- --id=@rule$((++number)) create ACL direction="$direction" priority=1002 action=allow-related
            match="\"$port == @group && (${rule#* })\"" -- add Port_Group group acls @rule$number)
    done
    NB+=(-- --id=@drop create ACL direction=to-lport priority=1001 action=drop match='"outport == @group && ip"'
        name=closed -- add Port_Group group acls @drop)
}

# balancer NAME PROTOCOL VIP MEMBERS WORDS...: on both networks.
balancer() {
    NB+=(-- --id=@"$1" create Load_Balancer name="$1" protocol="$2" vips="\"$3\"=\"$4\"" "${@:5}"
        -- add Logical_Switch one load_balancer @"$1" -- add Logical_Switch two load_balancer @"$1")
}

nb_load_balancers() {
    local affinity=options:affinity_timeout=36000
    balancer sticky tcp 10.96.0.10:80 192.168.20.11:8080,192.168.20.12:8080 $affinity
    balancer sticky-udp udp 10.96.0.10:53 192.168.20.11:8053,192.168.20.12:8053 $affinity
    balancer sticky6 tcp '[fd00:96::10]:80' '[fd00:20::11]:8080,[fd00:20::12]:8080' $affinity
    balancer sticky6-udp udp '[fd00:96::10]:53' '[fd00:20::11]:8053,[fd00:20::12]:8053' $affinity
    balancer sticky-one tcp 10.96.0.11:80 192.168.20.11:8080 $affinity
    balancer loose tcp 10.96.0.12:80 192.168.20.11:8080,192.168.20.12:8080
    balancer loose-udp udp 10.96.0.12:53 192.168.20.11:8053,192.168.20.12:8053
    balancer hairpin tcp 10.96.0.13:80 192.168.10.11:80
    NB+=(-- --id=@outside create Load_Balancer name=outside protocol=tcp $affinity
        vips='"172.24.4.100:80"="192.168.20.11:8080,192.168.20.12:8080"' -- add Logical_Router main load_balancer @outside)
}
