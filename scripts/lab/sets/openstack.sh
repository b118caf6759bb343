# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by set.sh and lib.sh
# shellcheck disable=SC2016 # OVN names address sets with a dollar sign
# An ML2/OVN cloud: two computes and a gateway. Tenant networks blue and green (IPv4 and
# IPv6) and the provider network vlan120 are on router main, whose gateway port is on the
# gateway; floating IPs are distributed or on the gateway. Networks red and grey are on
# router lone, which has no way out. Names and external_ids are those of neutron.

SET_SUMMARY='ML2/OVN: two computes and a gateway, floating IPs, SNAT, load balancers, security groups, provider VLAN'
SET_NODES=(compute1 compute2 gateway)
SET_NETWORKS=(underlay physnet1)
SET_CENTRAL=one

declare -gA CHASSIS=(
    [compute1]=4c4c4544-0000-4000-8000-000000000011
    [compute2]=4c4c4544-0000-4000-8000-000000000012
    [gateway]=4c4c4544-0000-4000-8000-000000000013
)
declare -gA OCTET=([compute1]=11 [compute2]=12 [gateway]=13)

# name, network, node, last octet of its addresses, security groups
VMS=(
    'vm1 blue compute1 5 web'
    'vm2 blue compute2 6 web'
    'vm3 blue compute2 7 web,icmp'
    'vm8 blue compute1 8 strict'
    'vm4 green compute1 5 db'
    'vm5 green compute2 6 db'
    'vm6 vlan120 compute1 5 -'
    'vm7 vlan120 compute2 6 icmp'
    'vm9 red compute1 5 -'
    'vm10 grey compute2 6 -'
    'vm11 blue nowhere 11 web'
    'vm12 grey compute2 12 -'
)
PROJECT=9c1d2e3f405142638495a6b7c8d9e0f1

net() { printf 'neutron-%s' "$(made_uuid "net-$1")"; }
router() { printf 'neutron-%s' "$(made_uuid "router-$1")"; }
port() { made_uuid "port-$1"; }
lrp() { printf 'lrp-%s' "$(made_uuid "port-$1")"; }

# subnet NETWORK: prints its number, in the third octet and in the IPv6 prefix.
subnet() {
    case $1 in
    blue) echo 192.168.10 fd00:10: ;;
    green) echo 192.168.20 fd00:20: ;;
    red) echo 192.168.30 fd00:30: ;;
    grey) echo 192.168.40 fd00:40: ;;
    vlan120) echo 10.120.0 fd00:120: ;;
    esac
}

# mac NETWORK OCTET
mac() {
    local v4 _
    read -r v4 _ <<<"$(subnet "$1")"
    case $1 in
    vlan120) printf 'fa:16:3e:78:00:%02x' "$2" ;;
    *) printf 'fa:16:3e:%s:00:%02x' "${v4##*.}" "$2" ;;
    esac
}

node_identity() {
    TOPO_HOST=$1
    TOPO_SYSTEM_ID=${CHASSIS[$1]}
    TOPO_REMOTE=tcp:192.168.24.10:6642
    UNDERLAY_IP=192.168.24.${OCTET[$1]}
    TOPO_OVS_SETTINGS=(
        other_config:vlan-limit=0
        external_ids:ovn-remote="\"unix:$SET/central/ovn/ovnsb_db.sock\""
        external_ids:ovn-encap-type=geneve
        external_ids:ovn-encap-ip="$UNDERLAY_IP"
        external_ids:ovn-bridge=br-int
        'external_ids:ovn-bridge-mappings="physnet1:br-ex"'
        # The MAC that a router's packets have on a VLAN, so that no switch learns the
        # router's MAC from several nodes.
        external_ids:ovn-chassis-mac-mappings="\"physnet1:0e:0a:00:00:01:${OCTET[$1]}\""
        external_ids:ovn-openflow-probe-interval=0
        external_ids:ovn-remote-probe-interval=60000
    )
    if [[ $1 == gateway ]]; then
        TOPO_OVS_SETTINGS+=('external_ids:ovn-cms-options="enable-chassis-as-gw"')
    fi
}

set_fabric() {
    local node
    for node in "${SET_NODES[@]}"; do
        fabric_wire underlay "$node" eth0
        fabric_wire physnet1 "$node" eth1
    done
    fabric_outside physnet1 ext0
}

node_switch() {
    local vm name network node octet id other
    add_bridge br-int fail_mode=secure other_config:disable-in-band=true
    add_bridge br-ex fail_mode=standalone other_config:mac-aging-time=3600
    take_down br-int
    add_underlay br-eth0 eth0 "$UNDERLAY_IP/24" "52:54:00:18:00:${OCTET[$NODE]}"
    add_local br-ex "52:54:00:19:00:${OCTET[$NODE]}"
    add_wire br-ex eth1 uplink
    for vm in "${VMS[@]}"; do
        read -r name network node octet _ <<<"$vm"
        [[ $node == "$NODE" ]] || continue
        id=$(port "$name")
        add_port br-int "tap${id:0:11}" edge "$name" mtu_request=1442 external_ids:iface-id="$id" \
            external_ids:attached-mac="\"$(mac "$network" "$octet")\"" \
            external_ids:iface-status=active external_ids:vm-id="\"$(made_uuid "$name")\""
    done
    for other in "${SET_NODES[@]}"; do
        [[ $other == "$NODE" ]] ||
            meet br-eth0 "192.168.24.${OCTET[$other]}" "52:54:00:18:00:${OCTET[$other]}"
    done
}

# The flow that leads to vm12 is missing, as after somebody removed it by hand.
node_finish() {
    local id
    [[ $NODE == compute2 ]] || return 0
    id=$(port vm12)
    ovs-ofctl -O OpenFlow15 del-flows br-int "out_port=$(ofport "tap${id:0:11}")"
}

set_logical() {
    NB=()
    nb_networks
    nb_vms
    ovn-nbctl "${NB[@]}" >/dev/null
    NB=()
    nb_routers
    ovn-nbctl "${NB[@]}" >/dev/null
    NB=()
    nb_security
    ovn-nbctl "${NB[@]}" >/dev/null
    NB=()
    nb_load_balancers
    nb_dhcp
    ovn-nbctl "${NB[@]}" >/dev/null
}

nb_networks() {
    local name
    for name in blue green red grey vlan120 public; do
        NB+=(-- ls-add "$(net $name)" -- set Logical_Switch "$(net $name)"
            external_ids:neutron\\:network_name=$name external_ids:neutron\\:revision_number=2
            external_ids:neutron\\:mtu=1442)
    done
    localnet vlan120 physnet1 120
    localnet public physnet1 ''
}

# localnet NETWORK PHYSNET TAG
localnet() {
    local id
    id=provnet-$(made_uuid "segment-$1")
    NB+=(-- lsp-add "$(net "$1")" "$id" -- lsp-set-type "$id" localnet -- lsp-set-addresses "$id" unknown
        -- lsp-set-options "$id" network_name="$2")
    [[ -z $3 ]] || NB+=(-- set Logical_Switch_Port "$id" tag="$3")
}

nb_vms() {
    local vm name network node octet groups id v4 v6 address
    for vm in "${VMS[@]}"; do
        read -r name network node octet groups <<<"$vm"
        read -r v4 v6 <<<"$(subnet "$network")"
        id=$(port "$name")
        address="$(mac "$network" "$octet") $v4.$octet $v6:$octet"
        NB+=(-- lsp-add "$(net "$network")" "$id" -- lsp-set-addresses "$id" "$address"
            -- set Logical_Switch_Port "$id" enabled=true
            external_ids:neutron\\:cidrs="\"$v4.$octet/24 $v6:$octet/64\""
            external_ids:neutron\\:device_id="\"$(made_uuid "$name")\""
            'external_ids:neutron\:device_owner="compute:nova"'
            external_ids:neutron\\:host_id="$node"
            external_ids:neutron\\:network_name="\"$(net "$network")\""
            external_ids:neutron\\:port_name="$name" external_ids:neutron\\:project_id="$PROJECT"
            external_ids:neutron\\:revision_number=4
            external_ids:neutron\\:security_group_ids="\"$(group_ids "$groups")\"")
        # vm11 runs on no node.
        [[ $node == nowhere ]] || NB+=(-- lsp-set-options "$id" requested-chassis="$node")
        # Port security is off where there are no groups.
        if [[ $groups == - ]]; then
            NB+=(-- lsp-set-addresses "$id" "$address" unknown)
        else
            NB+=(-- lsp-set-port-security "$id" "$address")
        fi
    done
}

group_ids() {
    local group separator=''
    for group in ${1//,/ }; do
        [[ $group != - ]] || continue
        printf '%s%s' "$separator" "$(made_uuid "sg-$group")"
        separator=' '
    done
}

# add_lrp ROUTER NETWORK MAC ADDRESSES...: a router port and its side of the switch.
add_lrp() {
    local name=$1-$2 id network
    id=$(port "$name")
    network=$2
    NB+=(-- lrp-add "$(router "$1")" "lrp-$id" "${@:3}"
        -- set Logical_Router_Port "lrp-$id" external_ids:neutron\\:network_name="\"$(net "$network")\""
        external_ids:neutron\\:router_name="\"$(made_uuid "router-$1")\""
        -- lsp-add "$(net "$network")" "$id" -- lsp-set-type "$id" router -- lsp-set-addresses "$id" router
        -- lsp-set-options "$id" router-port="lrp-$id" nat-addresses=router
        -- set Logical_Switch_Port "$id" 'external_ids:neutron\:device_owner="network:router_interface"'
        external_ids:neutron\\:device_id="\"$(made_uuid "router-$1")\"" external_ids:neutron\\:port_name="$name")
}

nb_routers() {
    local main lone ext
    main=$(router main)
    lone=$(router lone)
    ext=$(lrp main-public)
    NB+=(-- lr-add "$main" -- set Logical_Router "$main" external_ids:neutron\\:router_name=main
        external_ids:neutron\\:gw_port_id="\"$(port main-public)\""
        options:always_learn_from_arp_request=false options:dynamic_neigh_routers=true
        -- lr-add "$lone" -- set Logical_Router "$lone" external_ids:neutron\\:router_name=lone)
    add_lrp main blue fa:16:3e:aa:00:01 192.168.10.1/24 fd00:10::1/64
    add_lrp main green fa:16:3e:aa:00:02 192.168.20.1/24 fd00:20::1/64
    add_lrp main vlan120 fa:16:3e:aa:00:03 10.120.0.1/24 fd00:120::1/64
    add_lrp main public fa:16:3e:aa:00:10 172.24.4.10/24 2001:db8:4::10/64
    add_lrp lone red fa:16:3e:bb:00:01 192.168.30.1/24 fd00:30::1/64
    add_lrp lone grey fa:16:3e:bb:00:02 192.168.40.1/24 fd00:40::1/64
    NB+=(-- set Logical_Router_Port "$(lrp main-blue)" ipv6_ra_configs:address_mode=slaac
        ipv6_ra_configs:mtu=1442 ipv6_ra_configs:send_periodic=false
        -- set Logical_Router_Port "$(lrp main-vlan120)" options:reside-on-redirect-chassis=true
        -- set Logical_Router_Port "$ext" options:gateway_mtu=1400
        -- --id=@gw create Gateway_Chassis name="${ext}_${CHASSIS[gateway]}" chassis_name="\"${CHASSIS[gateway]}\"" priority=2
        -- set Logical_Router_Port "$ext" gateway_chassis=@gw
        -- lr-route-add "$main" 0.0.0.0/0 172.24.4.1 "$ext"
        -- lr-route-add "$main" ::/0 2001:db8:4::1 "$ext"
        -- lr-route-add "$main" 10.77.0.0/16 192.168.10.7
        -- lr-route-add "$main" 10.66.0.0/16 discard
        -- --ecmp lr-route-add "$main" 10.88.0.0/16 192.168.10.6
        -- --ecmp lr-route-add "$main" 10.88.0.0/16 192.168.10.7
        -- lr-policy-add "$main" 200 'ip4.src == 192.168.20.5 && ip4.dst == 203.0.113.0/24' drop
        -- lr-policy-add "$main" 150 'ip4.src == 192.168.20.6 && ip4.dst == 198.51.100.0/24' reroute 172.24.4.9
        -- lr-nat-add "$main" snat 172.24.4.10 192.168.10.0/24
        -- lr-nat-add "$main" snat 172.24.4.10 192.168.20.0/24
        -- lr-nat-add "$main" snat 172.24.4.10 10.120.0.0/24
        -- lr-nat-add "$main" snat 2001:db8:4::10 fd00:10::/64
        -- lr-nat-add "$main" dnat_and_snat 2001:db8:4::26 fd00:20::6)
    floating_ip 172.24.4.21 192.168.10.5 vm1 fa:16:3e:ff:00:21
    floating_ip 172.24.4.22 192.168.10.7 vm3
    floating_ip 172.24.4.24 192.168.20.5 vm4
    floating_ip 172.24.4.25 192.168.20.6 vm5 fa:16:3e:ff:00:25
}

# floating_ip EXTERNAL LOGICAL PORT [MAC]: it is distributed if it has a MAC of its own.
floating_ip() {
    local id
    id=$(port "$3")
    NB+=(-- --id=@fip"${1##*.}" create NAT type=dnat_and_snat external_ip="$1" logical_ip="$2")
    [[ -z ${4-} ]] || NB+=(external_mac="\"$4\"" logical_port="\"$id\"")
    NB+=(external_ids:neutron\\:fip_id="\"$(made_uuid "fip-$1")\""
        external_ids:neutron\\:fip_port_id="\"$id\"" external_ids:neutron\\:revision_number=3
        external_ids:neutron\\:router_name="\"$(router main)\""
        -- add Logical_Router "$(router main)" nat @fip"${1##*.}")
}

pg() { printf 'pg_%s' "$(made_uuid "sg-$1" | tr - _)"; }

# rule GROUP DIRECTION NAME MATCH: adds a rule of a security group. MATCH has GROUP for
# the port group, and ADDRESSES4(x) for the addresses of group x.
rule() {
    local group way priority=1002
    group=$(pg "$1")
    way=outport
    [[ $2 == to-lport ]] || way=inport
    NB+=(-- --id=@rule"$((++RULES))" create ACL direction="$2" priority=$priority action=allow-related
        match="\"$way == @$group && $4\""
        external_ids:neutron\\:security_group_rule_id="\"$(made_uuid "rule-$3")\""
        -- add Port_Group "$group" acls @rule$RULES)
}

nb_security() {
    local group web vm name groups members
    RULES=0
    for group in web icmp db strict; do
        members=()
        for vm in "${VMS[@]}"; do
            read -r name _ _ _ groups <<<"$vm"
            [[ ,$groups, != *,$group,* ]] || members+=("$(port "$name")")
        done
        NB+=(-- pg-add "$(pg $group)" "${members[@]}"
            -- set Port_Group "$(pg $group)" external_ids:neutron\\:security_group_id="\"$(made_uuid sg-$group)\"")
    done
    members=()
    for vm in "${VMS[@]}"; do
        read -r name _ _ _ groups <<<"$vm"
        [[ $groups == - ]] || members+=("$(port "$name")")
    done
    NB+=(-- pg-add neutron_pg_drop "${members[@]}")
    local way
    for way in to-lport:outport from-lport:inport; do
        NB+=(-- --id=@drop"${way%-*}" create ACL direction="${way%:*}" priority=1001 action=drop
            match="\"${way#*:} == @neutron_pg_drop && ip\"" log=false
            -- add Port_Group neutron_pg_drop acls @drop"${way%-*}")
    done
    web=$(pg web)
    for group in web icmp db; do
        rule $group from-lport $group-out4 ip4
        rule $group from-lport $group-out6 ip6
    done
    rule web to-lport web-http 'ip4 && ip4.src == 0.0.0.0/0 && tcp && tcp.dst == 80'
    rule web to-lport web-https 'ip4 && ip4.src == 0.0.0.0/0 && tcp && tcp.dst == 443'
    rule web to-lport web-ssh "ip4 && ip4.src == \$${web}_ip4 && tcp && tcp.dst == 22"
    rule web to-lport web-range 'ip4 && ip4.src == 192.168.20.0/24 && udp && udp.dst >= 5000 && udp.dst <= 5010'
    rule web to-lport web-http6 'ip6 && tcp && tcp.dst == 80'
    rule web to-lport web-ping6 'ip6 && icmp6'
    rule web to-lport web-ping-blue 'ip4 && ip4.src == 192.168.10.0/24 && icmp4'
    rule icmp to-lport icmp-ping 'ip4 && icmp4'
    rule db to-lport db-postgres "ip4 && ip4.src == \$${web}_ip4 && tcp && tcp.dst == 5432"
    rule db to-lport db-postgres6 "ip6 && ip6.src == \$${web}_ip6 && tcp && tcp.dst == 5432"
    rule db to-lport db-dns 'ip4 && udp && udp.dst == 53'
    rule db to-lport db-ping 'ip4 && icmp4'
    rule db to-lport db-ping6 'ip6 && icmp6'
    rule strict from-lport strict-https 'ip4 && tcp && tcp.dst == 443'
    rule strict from-lport strict-nd 'ip6 && icmp6'
    rule strict to-lport strict-ping 'ip4 && icmp4'
    # Not neutron's: a rejecting and a stateless rule.
    NB+=(-- --id=@reject create ACL direction=to-lport priority=1005 action=reject name=telnet
        match="\"outport == @$web && (tcp.dst == 23 || udp.dst == 69)\"" -- add Port_Group "$web" acls @reject
        -- --id=@stateless create ACL direction=to-lport priority=1006 action=allow-stateless name=snmp
        match="\"outport == @$(pg db) && ip4.src == 192.168.10.0/24 && udp.dst == 161\""
        -- add Port_Group "$(pg db)" acls @stateless)
}

# balancer NAME PROTOCOL VIP MEMBERS WORDS...
balancer() {
    local id vip_port=vip-$1
    id=$(made_uuid "lb-$1")
    NB+=(-- --id=@lb_"$1" create Load_Balancer name="\"$id\"" protocol="$2" vips="\"$3\"=\"$4\""
        external_ids:neutron\\:vip="\"$3\"" external_ids:neutron\\:vip_port_id="\"$(port "$vip_port")\""
        external_ids:enabled=True external_ids:lr_ref="\"$(router main)\"" "${@:5}"
        -- add Logical_Switch "$(net blue)" load_balancer @lb_"$1"
        -- add Logical_Switch "$(net green)" load_balancer @lb_"$1"
        -- add Logical_Router "$(router main)" load_balancer @lb_"$1")
}

nb_load_balancers() {
    balancer many tcp 192.168.10.100:80 192.168.10.5:80,192.168.10.6:80,192.168.10.7:80
    # The floating IP of a VIP is a VIP too.
    balancer single tcp 192.168.10.101:443 192.168.10.6:443 vips:'"172.24.4.40:443"'='"192.168.10.6:443"' \
        external_ids:neutron\\:vip_fip='"172.24.4.40"'
    balancer hairpin tcp 192.168.10.102:8080 192.168.10.5:80
    balancer dns udp 192.168.10.103:53 192.168.20.6:53
    balancer empty tcp 192.168.10.104:80 '' options:reject=true
    balancer six tcp '[fd00:10::100]:80' '[fd00:10::6]:80'
    balancer hairpin6 tcp '[fd00:10::102]:80' '[fd00:10::5]:80'
}

nb_dhcp() {
    local name
    NB+=(-- --id=@dhcp create DHCP_Options cidr=192.168.10.0/24
        options='"server_id"="192.168.10.1" "server_mac"="fa:16:3e:aa:00:01" "lease_time"="43200" "router"="192.168.10.1" "mtu"="1442" "dns_server"="{192.0.2.53}"')
    for name in vm1 vm2 vm3; do
        NB+=(-- set Logical_Switch_Port "$(port $name)" dhcpv4_options=@dhcp)
    done
}
