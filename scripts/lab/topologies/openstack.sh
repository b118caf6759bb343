# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by lib.sh
# An ML2/OVN cloud, seen from a compute node that is also a gateway chassis.
#
# Tenant networks `blue` (IPv4 and IPv6) and `green`, a provider VLAN network
# and the external network; `router-main` does SNAT, distributed and central
# floating IPs with its gateway port on three chassis (the first one remote),
# `router-edge` has its gateway port here first, `router-far` only elsewhere.

TOPO_SUMMARY='ML2/OVN compute and gateway: HA gateways with BFD, floating IPs, LBs, QoS, ACL meters, DHCP, provider VLAN'
TOPO_HOST=compute2
TOPO_SYSTEM_ID=4c4c4544-0000-4000-8000-000000000012
TOPO_OVN=yes
TOPO_UNDERLAY=eth0
TOPO_UNDERLAY_CIDR=192.168.24.12/24
TOPO_CENTRAL_CIDR=192.168.24.10/24
TOPO_OVS_SETTINGS=(
    # ovn-controller sets this too, but too late for the first feature probe
    other_config:vlan-limit=0
    'external_ids:ovn-remote="tcp:192.168.24.10:6642"'
    external_ids:ovn-encap-type=geneve
    external_ids:ovn-encap-ip=192.168.24.12
    external_ids:ovn-bridge=br-int
    'external_ids:ovn-bridge-mappings="physnet1:br-ex,physnet2:br-vlan"'
    'external_ids:ovn-cms-options="enable-chassis-as-gw"'
    external_ids:ovn-openflow-probe-interval=60
    external_ids:ovn-remote-probe-interval=60000
)

CH1=4c4c4544-0000-4000-8000-000000000011
CH2=$TOPO_SYSTEM_ID
CH3=4c4c4544-0000-4000-8000-000000000013

BLUE=neutron-0a7f3c1e-5d42-4b8e-9c61-2f10d7a4e501
GREEN=neutron-1b8a4d2f-6e53-4c9f-8d72-3a21e8b5f602
VLAN=neutron-2c9b5e30-7f64-4da0-9e83-4b32f9c60703
EXT=neutron-3dac6f41-8075-4eb1-af94-5c430ad71804
MAIN=neutron-4ebd7052-9186-4fc2-b0a5-6d541be82905
EDGE=neutron-5fce8163-a297-40d3-81b6-7e652cf93a06
FAR=neutron-60df9274-b3a8-41e4-92c7-8f763d0a4b07

# Ports are named by their uuid; a VIF is `tap` and its first eleven letters.
VM1=a1f0c2d4-11aa-4e01-8b3c-0d5e6f700001 # blue, here, floating IP
VM2=a2f0c2d4-22bb-4e02-8b3c-0d5e6f700002 # blue, here, trunk with a subport
VM3=a3f0c2d4-33cc-4e03-8b3c-0d5e6f700003 # blue, on chassis 1, floating IP
VM4=a4f0c2d4-44dd-4e04-8b3c-0d5e6f700004 # green, here
VM5=a5f0c2d4-55ee-4e05-8b3c-0d5e6f700005 # green, on chassis 3
VM6=a6f0c2d4-66ff-4e06-8b3c-0d5e6f700006 # provider VLAN, here, no security
VM7=a7f0c2d4-7700-4e07-8b3c-0d5e6f700007 # provider VLAN, here
SUB=a8f0c2d4-8811-4e08-8b3c-0d5e6f700008 # green, VLAN 55 of VM2
META_BLUE=b1f0c2d4-91aa-4e11-8b3c-0d5e6f700011
META_GREEN=b2f0c2d4-92bb-4e12-8b3c-0d5e6f700012

tap() { printf 'tap%s' "${1:0:11}"; }

add_vif() {
    local port=$1 mac=$2
    ovs-vsctl add-port br-int "$(tap "$port")" -- set Interface "$(tap "$port")" \
        external_ids:iface-id="$port" external_ids:attached-mac="\"$mac\"" \
        external_ids:iface-status=active external_ids:vm-id="\"${port/f0c2d4/e9b7a35c}\""
}

topo_node() {
    ovs-vsctl add-br br-int -- set Bridge br-int fail_mode=secure datapath_type=system \
        other_config:disable-in-band=true other_config:hwaddr='"46:c8:bb:d4:7f:12"' \
        -- add-br br-ex -- set Bridge br-ex datapath_type=system fail_mode=standalone \
        other_config:hwaddr='"52:54:00:19:00:12"' -- add-port br-ex eth1 \
        -- add-br br-vlan -- set Bridge br-vlan datapath_type=system fail_mode=standalone \
        other_config:hwaddr='"52:54:00:1a:00:12"' -- add-port br-vlan eth2
    add_vif $VM1 fa:16:3e:10:00:05
    add_vif $VM2 fa:16:3e:10:00:06
    add_vif $VM4 fa:16:3e:20:00:05
    add_vif $VM6 fa:16:3e:30:00:05
    add_vif $VM7 fa:16:3e:30:00:06
    add_vif $META_BLUE fa:16:3e:10:00:02
    add_vif $META_GREEN fa:16:3e:20:00:02
    # The kernel leaves the integration bridge's own port down.
    ovs-appctl netdev-dummy/set-admin-state br-int down >/dev/null
}

topo_logical() {
    add_chassis $CH1 compute1 192.168.24.11
    add_chassis $CH3 compute3 192.168.24.13
    nb_networks
    nb_routers
    nb_security
    nb_load_balancers
    nb_services
    ovn-nbctl --timeout=$((20 * LAB_PATIENCE)) --wait=sb sync
    bind_remote $VM3 $CH1
    bind_remote $VM5 $CH3
    # The MAC bindings that the routers have learned.
    learn_mac lrp-main-ext 172.24.4.1 02:00:00:00:00:fe
    learn_mac lrp-edge-ext 172.24.4.1 02:00:00:00:00:fe
}

nb_networks() {
    ovn-nbctl \
        -- ls-add $BLUE -- set Logical_Switch $BLUE external_ids:neutron\\:network_name=blue \
        -- lsp-add $BLUE $VM1 \
        -- lsp-set-addresses $VM1 'fa:16:3e:10:00:05 192.168.10.5 fd00:10::5' \
        -- lsp-set-port-security $VM1 'fa:16:3e:10:00:05 192.168.10.5 fd00:10::5' \
        -- lsp-add $BLUE $VM2 \
        -- lsp-set-addresses $VM2 'fa:16:3e:10:00:06 192.168.10.6 fd00:10::6' \
        -- lsp-set-port-security $VM2 'fa:16:3e:10:00:06 192.168.10.6 fd00:10::6 10.99.0.0/24' \
        -- lsp-add $BLUE $VM3 \
        -- lsp-set-addresses $VM3 'fa:16:3e:10:00:07 192.168.10.7 fd00:10::7' \
        -- lsp-set-port-security $VM3 'fa:16:3e:10:00:07 192.168.10.7 fd00:10::7' \
        -- lsp-add $BLUE $META_BLUE -- lsp-set-type $META_BLUE localport \
        -- lsp-set-addresses $META_BLUE 'fa:16:3e:10:00:02 192.168.10.2' \
        -- ls-add $GREEN -- set Logical_Switch $GREEN external_ids:neutron\\:network_name=green \
        other_config:mcast_snoop=true other_config:mcast_flood_unregistered=false \
        -- lsp-add $GREEN $VM4 -- lsp-set-addresses $VM4 'fa:16:3e:20:00:05 192.168.20.5' \
        -- lsp-set-port-security $VM4 'fa:16:3e:20:00:05 192.168.20.5' \
        -- lsp-add $GREEN $VM5 -- lsp-set-addresses $VM5 'fa:16:3e:20:00:06 192.168.20.6' \
        -- lsp-add $GREEN $SUB $VM2 55 \
        -- lsp-set-addresses $SUB 'fa:16:3e:20:00:55 192.168.20.55' \
        -- lsp-add $GREEN $META_GREEN -- lsp-set-type $META_GREEN localport \
        -- lsp-set-addresses $META_GREEN 'fa:16:3e:20:00:02 192.168.20.2' \
        -- ls-add $VLAN -- set Logical_Switch $VLAN external_ids:neutron\\:network_name=provider-120 \
        -- lsp-add $VLAN provnet-120 '' 120 -- lsp-set-type provnet-120 localnet \
        -- lsp-set-addresses provnet-120 unknown \
        -- lsp-set-options provnet-120 network_name=physnet2 \
        -- lsp-add $VLAN $VM6 -- lsp-set-addresses $VM6 'fa:16:3e:30:00:05 10.120.0.5' unknown \
        -- lsp-add $VLAN $VM7 -- lsp-set-addresses $VM7 'fa:16:3e:30:00:06 10.120.0.6' \
        -- lsp-set-port-security $VM7 'fa:16:3e:30:00:06 10.120.0.6' \
        -- ls-add $EXT -- set Logical_Switch $EXT external_ids:neutron\\:network_name=public \
        -- lsp-add $EXT provnet-public -- lsp-set-type provnet-public localnet \
        -- lsp-set-addresses provnet-public unknown \
        -- lsp-set-options provnet-public network_name=physnet1
}

# connect_router SWITCH ROUTER PORT: the switch's side of a router port.
connect_router() {
    ovn-nbctl lsp-add "$1" "lsp-$3" -- lsp-set-type "lsp-$3" router \
        -- lsp-set-addresses "lsp-$3" router -- lsp-set-options "lsp-$3" router-port="$3"
    # Only a gateway port announces its addresses.
    [[ $1 != "$EXT" ]] || ovn-nbctl set Logical_Switch_Port "lsp-$3" options:nat-addresses=router
}

nb_routers() {
    local group
    ovn-nbctl \
        -- lr-add $MAIN -- set Logical_Router $MAIN \
        options:always_learn_from_arp_request=false options:dynamic_neigh_routers=true \
        -- lrp-add $MAIN lrp-main-blue fa:16:3e:aa:00:01 192.168.10.1/24 fd00:10::1/64 \
        -- set Logical_Router_Port lrp-main-blue ipv6_ra_configs:address_mode=slaac \
        ipv6_ra_configs:mtu=1442 ipv6_ra_configs:send_periodic=false \
        -- lrp-add $MAIN lrp-main-green fa:16:3e:aa:00:02 192.168.20.1/24 \
        -- lrp-add $MAIN lrp-main-vlan fa:16:3e:aa:00:03 10.120.0.1/24 \
        -- set Logical_Router_Port lrp-main-vlan options:reside-on-redirect-chassis=true \
        -- lrp-add $MAIN lrp-main-ext fa:16:3e:aa:00:10 172.24.4.10/24 2001:db8:4::10/64 \
        -- set Logical_Router_Port lrp-main-ext options:gateway_mtu=1500 \
        -- lr-route-add $MAIN 0.0.0.0/0 172.24.4.1 lrp-main-ext \
        -- lr-route-add $MAIN ::/0 2001:db8:4::1 lrp-main-ext \
        -- lr-route-add $MAIN 10.77.0.0/16 192.168.10.5 \
        -- --ecmp lr-route-add $MAIN 10.88.0.0/16 192.168.10.5 \
        -- --ecmp lr-route-add $MAIN 10.88.0.0/16 192.168.10.6 \
        -- lr-route-add $MAIN 10.66.0.0/16 discard \
        -- --policy=src-ip lr-route-add $MAIN 192.168.20.128/25 172.24.4.254 lrp-main-ext \
        -- lr-policy-add $MAIN 200 'ip4.src == 192.168.20.5 && ip4.dst == 203.0.113.0/24' drop \
        -- lr-policy-add $MAIN 150 'ip4.src == 192.168.20.5 && ip4.dst == 198.51.100.0/24' reroute 172.24.4.253 \
        -- lr-policy-add $MAIN 140 'ip4.dst == 10.55.0.0/16' reroute 192.168.10.5,192.168.10.6 \
        -- lr-nat-add $MAIN snat 172.24.4.10 192.168.10.0/24 \
        -- lr-nat-add $MAIN snat 172.24.4.10 192.168.20.0/24 \
        -- lr-nat-add $MAIN dnat_and_snat 172.24.4.21 192.168.10.5 $VM1 fa:16:3e:ff:00:21 \
        -- lr-nat-add $MAIN dnat_and_snat 172.24.4.22 192.168.10.7 $VM3 fa:16:3e:ff:00:22 \
        -- lr-nat-add $MAIN dnat_and_snat 172.24.4.23 192.168.20.6 \
        -- lr-nat-add $MAIN dnat_and_snat 172.24.4.24 192.168.20.5 $VM4 fa:16:3e:ff:00:24
    ovn-nbctl \
        -- lr-add $EDGE \
        -- lrp-add $EDGE lrp-edge-vlan fa:16:3e:bb:00:03 10.120.0.254/24 \
        -- lrp-add $EDGE lrp-edge-ext fa:16:3e:bb:00:10 172.24.4.11/24 \
        -- lrp-set-gateway-chassis lrp-edge-ext $CH2 30 \
        -- lrp-set-gateway-chassis lrp-edge-ext $CH1 20 \
        -- lrp-set-gateway-chassis lrp-edge-ext $CH3 10 \
        -- lr-route-add $EDGE 0.0.0.0/0 172.24.4.1 lrp-edge-ext \
        -- --portrange lr-nat-add $EDGE snat 172.24.4.11 10.120.0.0/24 \
        -- lr-nat-add $EDGE dnat_and_snat 172.24.4.25 10.120.0.5 \
        -- lr-add $FAR \
        -- lrp-add $FAR lrp-far-green fa:16:3e:cc:00:02 192.168.20.254/24 \
        -- lrp-add $FAR lrp-far-ext fa:16:3e:cc:00:10 172.24.4.12/24 \
        -- lrp-set-gateway-chassis lrp-far-ext $CH3 20 \
        -- lrp-set-gateway-chassis lrp-far-ext $CH1 10 \
        -- lr-route-add $FAR 0.0.0.0/0 172.24.4.1 lrp-far-ext \
        -- lr-nat-add $FAR snat 172.24.4.12 192.168.20.0/24
    group=$(ovn-nbctl ha-chassis-group-add hagrp-main \
        -- ha-chassis-group-add-chassis hagrp-main $CH1 30 \
        -- ha-chassis-group-add-chassis hagrp-main $CH2 20 \
        -- ha-chassis-group-add-chassis hagrp-main $CH3 10 &&
        ovn-nbctl --bare --columns=_uuid find HA_Chassis_Group name=hagrp-main)
    ovn-nbctl set Logical_Router_Port lrp-main-ext ha_chassis_group="$group"
    connect_router $BLUE $MAIN lrp-main-blue
    connect_router $GREEN $MAIN lrp-main-green
    connect_router $VLAN $MAIN lrp-main-vlan
    connect_router $EXT $MAIN lrp-main-ext
    connect_router $VLAN $EDGE lrp-edge-vlan
    connect_router $EXT $EDGE lrp-edge-ext
    connect_router $GREEN $FAR lrp-far-green
    connect_router $EXT $FAR lrp-far-ext
}

nb_security() {
    local web=pg_5b6f7081_92a3_44b4_85c6_d7e8f9a0b101 db=pg_6c708192_a3b4_45c5_96d7_e8f9a0b1c202
    ovn-nbctl meter-add acl_log_meter drop 100 pktps 25 \
        -- set Meter acl_log_meter fair=false \
        -- pg-add neutron_pg_drop $VM1 $VM2 $VM3 $VM4 \
        -- pg-add $web $VM1 $VM2 $VM3 \
        -- pg-add $db $VM4 $VM2 \
        -- create Address_Set name=as_clients \
        addresses='192.168.20.5 192.168.20.6 192.168.20.55 203.0.113.7 10.1.0.0/16' \
        -- create Address_Set name=as_clients6 addresses='"fd00:10::5" "fd00:10::6" "2001:db8:77::/64"' \
        -- create Address_Set name=as_monitor addresses='192.168.24.250 172.24.4.1' \
        -- --type=port-group --log --name=drop-in --severity=info --meter=acl_log_meter \
        acl-add neutron_pg_drop to-lport 1001 'outport == @neutron_pg_drop && ip' drop \
        -- --type=port-group --log --name=drop-out --severity=info --meter=acl_log_meter \
        acl-add neutron_pg_drop from-lport 1001 'inport == @neutron_pg_drop && ip' drop \
        -- --type=port-group acl-add $web from-lport 1002 "inport == @$web && ip4" allow-related \
        -- --type=port-group acl-add $web from-lport 1002 "inport == @$web && ip6" allow-related \
        -- --type=port-group acl-add $web to-lport 1002 "outport == @$web && ip4 && ip4.src == \$as_clients && tcp.dst == {80, 443, 8080, 8443}" allow-related \
        -- --type=port-group acl-add $web to-lport 1002 "outport == @$web && ip4 && ip4.src == \$${web}_ip4 && tcp.dst == {22, 9100}" allow-related \
        -- --type=port-group acl-add $web to-lport 1002 "outport == @$web && ip6 && ip6.src == \$as_clients6 && tcp.dst == {80, 443}" allow-related \
        -- --type=port-group acl-add $web to-lport 1002 "outport == @$web && ip4 && icmp4" allow-related \
        -- --type=port-group acl-add $web to-lport 1002 "outport == @$web && ip4 && sctp.dst == 3868" allow-related \
        -- --type=port-group --log --name=telnet --severity=warning --meter=acl_log_meter \
        acl-add $web to-lport 1005 "outport == @$web && tcp.dst == 23" reject \
        -- --type=port-group acl-add $db from-lport 1002 "inport == @$db && ip4" allow-related \
        -- --type=port-group acl-add $db to-lport 1002 "outport == @$db && ip4.src == {\$as_clients, \$${web}_ip4} && tcp.dst == {3306, 5432} && tcp.src >= 1024" allow-related \
        -- --type=port-group acl-add $db to-lport 1003 "outport == @$db && ip4.src == \$as_monitor && udp.dst == {161, 162}" allow-stateless \
        -- --type=port-group --log --name=ssh-in --severity=notice --meter=acl_log_meter \
        acl-add $db to-lport 1002 "outport == @$db && ip4 && tcp.dst == 22" allow-related >/dev/null
}

nb_load_balancers() {
    local group
    ovn-nbctl \
        -- lb-add lb-web 192.168.10.100:80 192.168.10.5:80,192.168.10.6:80,192.168.10.7:80 tcp \
        -- lb-add lb-sticky 192.168.10.101:443 192.168.10.5:8443,192.168.10.6:8443 tcp \
        -- lb-add lb-hash 192.168.10.102:8080 192.168.10.5:8080,192.168.10.6:8080,192.168.10.7:8080,192.168.20.6:8080 tcp \
        -- lb-add lb-dns 192.168.10.103:53 192.168.10.6:53,192.168.10.7:53 udp \
        -- lb-add lb-fip 172.24.4.40:80 192.168.10.5:80,192.168.10.6:80 tcp \
        -- lb-add lb-sctp 192.168.10.105:3868 192.168.10.5:3868,192.168.10.7:3868 sctp \
        -- lb-add lb-v6 '[fd00:10::100]:80' '[fd00:10::5]:80,[fd00:10::6]:80' tcp \
        -- lb-add lb-empty 192.168.10.104:80 '' tcp \
        -- lb-add lb-any 192.168.10.106 192.168.10.5,192.168.10.6
    ovn-nbctl set Load_Balancer lb-sticky options:affinity_timeout=60 \
        -- set Load_Balancer lb-hash selection_fields='ip_src,ip_dst,tp_src' \
        -- set Load_Balancer lb-empty options:reject=true \
        -- set Load_Balancer lb-any options:hairpin_snat_ip=192.168.10.199
    group=$(ovn-nbctl create Load_Balancer_Group name=octavia)
    for lb in lb-web lb-sticky lb-hash lb-dns lb-sctp lb-v6 lb-empty lb-any; do
        ovn-nbctl add Load_Balancer_Group "$group" load_balancer \
            "$(ovn-nbctl --bare --columns=_uuid find Load_Balancer name=$lb)"
    done
    ovn-nbctl add Logical_Switch $BLUE load_balancer_group "$group" \
        -- add Logical_Router $MAIN load_balancer_group "$group" \
        -- add Logical_Switch $GREEN load_balancer_group "$group" \
        -- lr-lb-add $MAIN lb-fip -- ls-lb-add $EXT lb-fip
}

nb_services() {
    local v4 v6 green dns
    v4=$(ovn-nbctl create DHCP_Options cidr=192.168.10.0/24 \
        options='"server_id"="192.168.10.1" "server_mac"="fa:16:3e:aa:00:01" "lease_time"="43200" "router"="192.168.10.1" "mtu"="1442" "dns_server"="{192.0.2.53}" "classless_static_route"="{169.254.169.254/32,192.168.10.2, 0.0.0.0/0,192.168.10.1}"')
    v6=$(ovn-nbctl create DHCP_Options cidr='"fd00:10::/64"' \
        options='"server_id"="fa:16:3e:aa:00:01" "dns_server"="{2001:db8::53}"')
    green=$(ovn-nbctl create DHCP_Options cidr=192.168.20.0/24 \
        options='"server_id"="192.168.20.1" "server_mac"="fa:16:3e:aa:00:02" "lease_time"="43200" "router"="192.168.20.1" "mtu"="1442"')
    dns=$(ovn-nbctl create DNS records='{"app.blue.example"="192.168.10.5 fd00:10::5","db.green.example"="192.168.20.5"}')
    ovn-nbctl lsp-set-dhcpv4-options $VM1 "$v4" -- lsp-set-dhcpv4-options $VM2 "$v4" \
        -- lsp-set-dhcpv6-options $VM1 "$v6" -- lsp-set-dhcpv4-options $VM4 "$green" \
        -- add Logical_Switch $BLUE dns_records "$dns" \
        -- qos-add $BLUE from-lport 2002 "inport == \"$VM1\"" rate=10000 burst=8000 \
        -- qos-add $BLUE from-lport 2003 "inport == \"$VM1\" && tcp" dscp=26 \
        -- qos-add $BLUE from-lport 2003 "inport == \"$VM2\" && udp" dscp=46 \
        -- qos-add $BLUE from-lport 2004 "inport == \"$VM2\" && tcp.dst == 443" rate=20000 dscp=10 \
        -- qos-add $BLUE to-lport 2002 "outport == \"$VM2\"" rate=5000 burst=4000 \
        -- qos-add $EXT to-lport 2001 'outport == "provnet-public" && ip4.src == 172.24.4.21' rate=3000 burst=2400 \
        -- qos-add $GREEN from-lport 2002 "inport == \"$VM4\"" dscp=18
}

topo_finish() {
    # Chassis 1, first for router-main, is alive; chassis 3 is not.
    set_forwarding "$(tunnel_to 192.168.24.11)" true
    set_forwarding "$(tunnel_to 192.168.24.13)" false
    wait_for "the gateway port of router-edge to come here" 10 is_here cr-lrp-edge-ext
    wait_for "the gateway port of router-main to leave" 10 is_not_here cr-lrp-main-ext
    bind_remote cr-lrp-main-ext $CH1
    bind_remote cr-lrp-far-ext $CH3
    # The hosts from which the external bridges have learned.
    add_learned br-ex eth1 0 02:00:00:00:00:fe
    add_learned br-vlan eth2 120 02:00:00:00:78:01
    wait_for_macs br-ex fa:16:3e:ff:00:21 fa:16:3e:ff:00:24 fa:16:3e:bb:00:10
}

topo_packets() {
    local blue green vlan main
    blue=$(tunnel_keys $BLUE lsp-lrp-main-blue $VM1)
    green=$(tunnel_keys $GREEN $VM5 $VM4)
    vlan=$(tunnel_keys $VLAN $VM7 $VM6)
    main=$(tunnel_keys $MAIN lrp-main-blue cr-lrp-main-ext)
    local s1=dl_src=fa:16:3e:10:00:05 n1=nw_src=192.168.10.5
    local s2=dl_src=fa:16:3e:10:00:06 n2=nw_src=192.168.10.6
    local s4=dl_src=fa:16:3e:20:00:05 n4=nw_src=192.168.20.5
    local s6=dl_src=fa:16:3e:30:00:05 n6=nw_src=10.120.0.5
    local s7=dl_src=fa:16:3e:30:00:06 n7=nw_src=10.120.0.6
    local to1=dl_dst=fa:16:3e:10:00:05 to2=dl_dst=fa:16:3e:10:00:06 to3=dl_dst=fa:16:3e:10:00:07
    local gwb=dl_dst=fa:16:3e:aa:00:01 gwg=dl_dst=fa:16:3e:aa:00:02 gwv=dl_dst=fa:16:3e:aa:00:03
    local all=dl_dst=ff:ff:ff:ff:ff:ff new='--ct-next trk,new' est='--ct-next trk,est'
    local tun1 tun3 vm1 vm2 vm4 vm6 vm7
    vm1="in_port=@$(tap $VM1)@"
    vm2="in_port=@$(tap $VM2)@"
    vm4="in_port=@$(tap $VM4)@"
    vm6="in_port=@$(tap $VM6)@"
    vm7="in_port=@$(tap $VM7)@"
    tun1="in_port=@$(tunnel_to 192.168.24.11)@,tun_src=192.168.24.11,tun_dst=192.168.24.12"
    tun3="in_port=@$(tunnel_to 192.168.24.13)@,tun_src=192.168.24.13,tun_dst=192.168.24.12"
    cat <<EOF
# switched, inside blue
br-int||$vm1,icmp,$to2,$s1,$n1,nw_dst=192.168.10.6,icmp_type=8,icmp_code=0,nw_ttl=64
br-int|$est $est|$vm1,icmp,$to2,$s1,$n1,nw_dst=192.168.10.6,icmp_type=8,icmp_code=0,nw_ttl=64
br-int|$new $new|$vm1,tcp,$to2,$s1,$n1,nw_dst=192.168.10.6,tp_src=4000,tp_dst=22,nw_ttl=64
br-int|$est,rpl $est,rpl|$vm1,tcp,$to2,$s1,$n1,nw_dst=192.168.10.6,tp_src=22,tp_dst=4000,nw_ttl=64
br-int|$new $new|$vm1,tcp,$to2,$s1,$n1,nw_dst=192.168.10.6,tp_src=4000,tp_dst=23,nw_ttl=64
br-int||$vm1,tcp,$to2,$s1,$n1,nw_dst=192.168.10.6,tp_src=4000,tp_dst=9999,nw_ttl=64
br-int|$new $new|$vm1,sctp,$to2,$s1,$n1,nw_dst=192.168.10.6,sctp_src=4000,sctp_dst=3868,nw_ttl=64
br-int|$new $new|$vm2,tcp,$to1,$s2,$n2,nw_dst=192.168.10.5,tp_src=4000,tp_dst=80,nw_ttl=64
br-int|$new $new|$vm2,tcp,$to3,$s2,$n2,nw_dst=192.168.10.7,tp_src=4000,tp_dst=443,nw_ttl=64
br-int|$est $est|$vm2,udp,$to3,$s2,$n2,nw_dst=192.168.10.7,udp_src=4000,udp_dst=5000,nw_ttl=64
br-int||$vm2,udp,$to3,$s2,nw_src=10.99.0.7,nw_dst=192.168.10.7,udp_src=4000,udp_dst=5000,nw_ttl=64
br-int||$vm1,tcp,$to2,dl_src=fa:16:3e:99:99:99,$n1,nw_dst=192.168.10.6,tp_src=1,tp_dst=22,nw_ttl=64
br-int||$vm1,tcp,$to2,$s1,nw_src=192.168.10.99,nw_dst=192.168.10.6,tp_src=1,tp_dst=22,nw_ttl=64
br-int||$vm1,icmp,dl_dst=fa:16:3e:10:00:99,$s1,$n1,nw_dst=192.168.10.99,icmp_type=8,icmp_code=0,nw_ttl=64
br-int|$new $new|$vm1,tcp6,$to2,$s1,ipv6_src=fd00:10::5,ipv6_dst=fd00:10::6,tp_src=4000,tp_dst=443,nw_ttl=64
br-int||$vm1,tcp6,$to2,$s1,ipv6_src=fd00:10::5,ipv6_dst=fd00:10::6,tp_src=4000,tp_dst=22,nw_ttl=64
# ARP, ND, RS, DHCP, DNS, metadata
br-int||$vm1,arp,$all,$s1,arp_op=1,arp_spa=192.168.10.5,arp_tpa=192.168.10.1,arp_sha=fa:16:3e:10:00:05
br-int||$vm1,arp,$all,$s1,arp_op=1,arp_spa=192.168.10.5,arp_tpa=192.168.10.6,arp_sha=fa:16:3e:10:00:05
br-int||$vm1,arp,$all,$s1,arp_op=1,arp_spa=192.168.10.5,arp_tpa=192.168.10.77,arp_sha=fa:16:3e:10:00:05
br-int||$vm1,arp,$all,$s1,arp_op=1,arp_spa=192.168.10.66,arp_tpa=192.168.10.1,arp_sha=fa:16:3e:10:00:05
br-int||$vm1,icmp6,dl_dst=33:33:ff:00:00:01,$s1,ipv6_src=fd00:10::5,ipv6_dst=ff02::1:ff00:1,icmpv6_type=135,icmpv6_code=0,nd_target=fd00:10::1,nd_sll=fa:16:3e:10:00:05,nw_ttl=255
br-int||$vm1,icmp6,dl_dst=33:33:ff:00:00:06,$s1,ipv6_src=fd00:10::5,ipv6_dst=ff02::1:ff00:6,icmpv6_type=135,icmpv6_code=0,nd_target=fd00:10::6,nd_sll=fa:16:3e:10:00:05,nw_ttl=255
br-int||$vm1,icmp6,dl_dst=33:33:00:00:00:02,$s1,ipv6_src=fe80::f816:3eff:fe10:5,ipv6_dst=ff02::2,icmpv6_type=133,icmpv6_code=0,nw_ttl=255
br-int||$vm1,udp,$all,$s1,nw_src=0.0.0.0,nw_dst=255.255.255.255,udp_src=68,udp_dst=67,nw_ttl=64
br-int||$vm1,udp6,dl_dst=33:33:00:01:00:02,$s1,ipv6_src=fe80::f816:3eff:fe10:5,ipv6_dst=ff02::1:2,udp_src=546,udp_dst=547,nw_ttl=64
br-int||$vm1,udp,$gwb,$s1,$n1,nw_dst=192.0.2.53,udp_src=4000,udp_dst=53,nw_ttl=64
br-int||$vm1,tcp,dl_dst=fa:16:3e:10:00:02,$s1,$n1,nw_dst=169.254.169.254,tp_src=4000,tp_dst=80,nw_ttl=64
br-int||in_port=@$(tap $META_BLUE)@,tcp,$to1,dl_src=fa:16:3e:10:00:02,nw_src=169.254.169.254,nw_dst=192.168.10.5,tp_src=80,tp_dst=4000,nw_ttl=64
br-int||in_port=@$(tap $META_BLUE)@,arp,$all,dl_src=fa:16:3e:10:00:02,arp_op=1,arp_spa=192.168.10.2,arp_tpa=192.168.10.7,arp_sha=fa:16:3e:10:00:02
# routed: between networks, outside, floating IPs
br-int|$est $est $est $est|$vm1,tcp,$gwb,$s1,$n1,nw_dst=192.168.20.5,tp_src=4000,tp_dst=3306,nw_ttl=64
br-int||$vm1,tcp,$gwb,$s1,$n1,nw_dst=192.168.20.6,tp_src=4000,tp_dst=3306,nw_ttl=64
br-int|$new $new $new|$vm4,tcp,$gwg,$s4,$n4,nw_dst=192.168.10.5,tp_src=4000,tp_dst=8443,nw_ttl=64
br-int||$vm4,tcp,$gwg,$s4,$n4,nw_dst=192.168.10.6,tp_src=4000,tp_dst=81,nw_ttl=64
br-int||$vm1,tcp,$gwb,$s1,$n1,nw_dst=198.51.100.9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int|$new $new $new|$vm1,icmp,$gwb,$s1,$n1,nw_dst=172.24.4.1,icmp_type=8,icmp_code=0,nw_ttl=64
br-int||$vm2,tcp,$gwb,$s2,$n2,nw_dst=198.51.100.9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int|$est $est|$vm2,udp,$gwb,$s2,$n2,nw_dst=198.51.100.9,udp_src=4000,udp_dst=123,nw_ttl=64
br-int||$vm4,tcp,$gwg,$s4,$n4,nw_dst=203.0.113.9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int||$vm4,tcp,$gwg,$s4,$n4,nw_dst=198.51.100.9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int||$vm4,tcp,$gwg,$s4,$n4,nw_dst=192.0.2.9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int||$vm4,tcp,dl_dst=fa:16:3e:cc:00:02,$s4,$n4,nw_dst=192.0.2.9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int||$vm4,arp,$all,$s4,arp_op=1,arp_spa=192.168.20.5,arp_tpa=192.168.20.254,arp_sha=fa:16:3e:20:00:05
br-int||$vm1,icmp,$gwb,$s1,$n1,nw_dst=192.168.10.1,icmp_type=8,icmp_code=0,nw_ttl=64
br-int||$vm1,icmp,$gwb,$s1,$n1,nw_dst=198.51.100.9,icmp_type=8,icmp_code=0,nw_ttl=1
br-int||$vm1,tcp,$gwb,$s1,$n1,nw_dst=172.24.4.22,tp_src=4000,tp_dst=80,nw_ttl=64
br-int||$vm1,tcp,$gwb,$s1,$n1,nw_dst=10.77.1.1,tp_src=4000,tp_dst=80,nw_ttl=64
br-int||$vm4,udp,$gwg,$s4,$n4,nw_dst=10.88.1.1,udp_src=4000,udp_dst=80,nw_ttl=64
br-int||$vm4,udp,$gwg,$s4,$n4,nw_dst=10.66.1.1,udp_src=4000,udp_dst=80,nw_ttl=64
br-int||$vm4,udp,$gwg,$s4,$n4,nw_dst=10.55.1.1,udp_src=4000,udp_dst=80,nw_ttl=64
br-int||$vm1,tcp6,$gwb,$s1,ipv6_src=fd00:10::5,ipv6_dst=2001:db8:77::9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int||$vm2,dl_vlan=55,icmp,$gwg,dl_src=fa:16:3e:20:00:55,nw_src=192.168.20.55,nw_dst=192.168.10.5,icmp_type=8,icmp_code=0,nw_ttl=64
br-int||$vm2,dl_vlan=55,icmp,dl_dst=fa:16:3e:20:00:05,dl_src=fa:16:3e:20:00:55,nw_src=192.168.20.55,nw_dst=192.168.20.5,icmp_type=8,icmp_code=0,nw_ttl=64
# load balancers
br-int||$vm1,tcp,$gwb,$s1,$n1,nw_dst=192.168.10.100,tp_src=4001,tp_dst=80,nw_ttl=64
br-int|$new $new|$vm2,tcp,$gwb,$s2,$n2,nw_dst=192.168.10.101,tp_src=4002,tp_dst=443,nw_ttl=64
br-int|$new|$vm2,tcp,$gwb,$s2,$n2,nw_dst=192.168.10.102,tp_src=4003,tp_dst=8080,nw_ttl=64
br-int|$new|$vm2,tcp,$gwb,$s2,$n2,nw_dst=192.168.10.102,tp_src=4004,tp_dst=8080,nw_ttl=64
br-int|$new|$vm2,udp,$gwb,$s2,$n2,nw_dst=192.168.10.103,udp_src=4004,udp_dst=53,nw_ttl=64
br-int|$new|$vm1,sctp,$gwb,$s1,$n1,nw_dst=192.168.10.105,sctp_src=4004,sctp_dst=3868,nw_ttl=64
br-int|$new|$vm1,tcp,$gwb,$s1,$n1,nw_dst=192.168.10.106,tp_src=4004,tp_dst=1234,nw_ttl=64
br-int|$new|$vm1,tcp,$gwb,$s1,$n1,nw_dst=192.168.10.104,tp_src=4004,tp_dst=80,nw_ttl=64
br-int|$new|$vm1,tcp6,$gwb,$s1,ipv6_src=fd00:10::5,ipv6_dst=fd00:10::100,tp_src=4004,tp_dst=80,nw_ttl=64
br-int|$est,dnat|$vm1,tcp,$gwb,$s1,$n1,nw_dst=192.168.10.100,tp_src=4005,tp_dst=80,nw_ttl=64
br-int|$new|$vm4,tcp,$gwg,$s4,$n4,nw_dst=192.168.10.100,tp_src=4006,tp_dst=80,nw_ttl=64
br-int||$vm1,arp,$all,$s1,arp_op=1,arp_spa=192.168.10.5,arp_tpa=192.168.10.100,arp_sha=fa:16:3e:10:00:05
# the provider VLAN network
br-int||$vm6,icmp,dl_dst=fa:16:3e:30:00:06,$s6,$n6,nw_dst=10.120.0.6,icmp_type=8,icmp_code=0,nw_ttl=64
br-int||$vm6,icmp,dl_dst=02:00:00:00:78:01,$s6,$n6,nw_dst=10.120.0.99,icmp_type=8,icmp_code=0,nw_ttl=64
br-int||$vm6,icmp,dl_dst=02:00:00:00:78:77,$s6,$n6,nw_dst=10.120.0.77,icmp_type=8,icmp_code=0,nw_ttl=64
br-int||$vm6,icmp,dl_dst=fa:16:3e:bb:00:03,$s6,$n6,nw_dst=198.51.100.9,icmp_type=8,icmp_code=0,nw_ttl=64
br-int||$vm7,tcp,dl_dst=fa:16:3e:bb:00:03,$s7,$n7,nw_dst=198.51.100.9,tp_src=4000,tp_dst=80,nw_ttl=64
br-int||$vm7,tcp,$gwv,$s7,$n7,nw_dst=192.168.10.5,tp_src=4000,tp_dst=80,nw_ttl=64
br-int||$vm7,arp,$all,$s7,arp_op=1,arp_spa=10.120.0.6,arp_tpa=10.120.0.254,arp_sha=fa:16:3e:30:00:06
br-int||$vm7,arp,$all,$s7,arp_op=1,arp_spa=10.120.0.6,arp_tpa=10.120.0.99,arp_sha=fa:16:3e:30:00:06
br-vlan||in_port=@eth2@,dl_vlan=120,icmp,dl_dst=fa:16:3e:30:00:06,dl_src=02:00:00:00:78:01,nw_src=10.120.0.99,nw_dst=10.120.0.6,icmp_type=8,icmp_code=0,nw_ttl=64
br-vlan||in_port=@eth2@,dl_vlan=120,arp,$all,dl_src=02:00:00:00:78:01,arp_op=1,arp_spa=10.120.0.99,arp_tpa=10.120.0.254,arp_sha=02:00:00:00:78:01
br-vlan||in_port=@eth2@,dl_vlan=121,arp,$all,dl_src=02:00:00:00:78:01,arp_op=1,arp_spa=10.121.0.99,arp_tpa=10.121.0.1,arp_sha=02:00:00:00:78:01
br-vlan||in_port=LOCAL,ip,$all,dl_src=52:54:00:1a:00:12,nw_src=10.0.0.1,nw_dst=255.255.255.255,nw_proto=17,nw_ttl=64
# broadcast and multicast
br-int||$vm1,ip,nw_proto=2,dl_dst=01:00:5e:00:00:16,$s1,$n1,nw_dst=224.0.0.22,nw_ttl=1
br-int||$vm4,udp,dl_dst=01:00:5e:01:01:01,$s4,$n4,nw_dst=239.1.1.1,udp_src=5,udp_dst=6,nw_ttl=64
br-int||$vm1,udp,$all,$s1,$n1,nw_dst=192.168.10.255,udp_src=137,udp_dst=137,nw_ttl=64
br-int||$vm1,udp6,dl_dst=33:33:00:00:00:fb,$s1,ipv6_src=fe80::f816:3eff:fe10:5,ipv6_dst=ff02::fb,udp_src=5353,udp_dst=5353,nw_ttl=255
# from other chassis
br-int||$tun1,$blue,icmp,$to1,dl_src=fa:16:3e:aa:00:01,nw_src=172.24.4.1,nw_dst=192.168.10.5,icmp_type=0,icmp_code=0,nw_ttl=63
br-int|$new|$tun1,$blue,tcp,$to1,dl_src=fa:16:3e:aa:00:01,nw_src=10.1.2.3,nw_dst=192.168.10.5,tp_src=4000,tp_dst=443,nw_ttl=63
br-int|$new|$tun3,$green,tcp,dl_dst=fa:16:3e:20:00:05,dl_src=fa:16:3e:20:00:06,nw_src=192.168.20.6,nw_dst=192.168.20.5,tp_src=4000,tp_dst=5432,nw_ttl=64
br-int||$tun3,$vlan,icmp,dl_dst=fa:16:3e:30:00:05,$s7,$n7,nw_dst=10.120.0.5,icmp_type=8,icmp_code=0,nw_ttl=64
br-int||$tun3,$main,tcp,dl_dst=fa:16:3e:aa:00:10,dl_src=fa:16:3e:aa:00:01,nw_src=192.168.10.7,nw_dst=198.51.100.9,tp_src=4000,tp_dst=443,nw_ttl=63
# from outside
br-ex||in_port=@eth1@,arp,$all,dl_src=02:00:00:00:00:fe,arp_op=1,arp_spa=172.24.4.1,arp_tpa=172.24.4.21,arp_sha=02:00:00:00:00:fe
br-ex||in_port=@eth1@,arp,$all,dl_src=02:00:00:00:00:fe,arp_op=1,arp_spa=172.24.4.1,arp_tpa=172.24.4.11,arp_sha=02:00:00:00:00:fe
br-ex||in_port=@eth1@,icmp,dl_dst=fa:16:3e:ff:00:21,dl_src=02:00:00:00:00:fe,nw_src=172.24.4.1,nw_dst=172.24.4.21,icmp_type=8,icmp_code=0,nw_ttl=64
br-ex|$new $new $new|in_port=@eth1@,tcp,dl_dst=fa:16:3e:bb:00:10,dl_src=02:00:00:00:00:fe,nw_src=203.0.113.7,nw_dst=172.24.4.25,tp_src=4000,tp_dst=80,nw_ttl=64
br-ex||in_port=@eth1@,tcp,dl_dst=fa:16:3e:bb:00:10,dl_src=02:00:00:00:00:fe,nw_src=203.0.113.7,nw_dst=172.24.4.11,tp_src=80,tp_dst=4000,nw_ttl=64
br-ex||in_port=@eth1@,icmp6,dl_dst=33:33:ff:00:00:10,dl_src=02:00:00:00:00:fe,ipv6_src=2001:db8:4::1,ipv6_dst=ff02::1:ff00:10,icmpv6_type=135,icmpv6_code=0,nd_target=2001:db8:4::10,nd_sll=02:00:00:00:00:fe,nw_ttl=255
br-ex||in_port=LOCAL,icmp,dl_dst=02:00:00:00:00:fe,dl_src=52:54:00:19:00:12,nw_src=172.24.4.2,nw_dst=172.24.4.1,icmp_type=8,icmp_code=0,nw_ttl=64
br-ex||in_port=LOCAL,udp,dl_dst=02:00:00:00:00:55,dl_src=52:54:00:19:00:12,nw_src=172.24.4.2,nw_dst=172.24.4.55,udp_src=4000,udp_dst=53,nw_ttl=64
EOF
}

# From each VM to a neighbour, to other networks and outside, with several protocols.
topo_logical_packets() {
    local switch port mac ip near nearmac gateway to how
    while read -r switch port mac ip near nearmac gateway; do
        for how in 'icmp4.type == 8' 'tcp.src == 4000 && tcp.dst == 22' 'udp.src == 4000 && udp.dst == 53'; do
            logical_packet "$switch" "$port" "$mac" "$nearmac" "$ip" "$near" "$how"
            for to in 192.168.20.5 192.168.10.5 198.51.100.9 172.24.4.22; do
                logical_packet "$switch" "$port" "$mac" "$gateway" "$ip" $to "$how"
            done
        done
        printf '%s|inport == "%s" && eth.src == %s && eth.dst == ff:ff:ff:ff:ff:ff && arp.op == 1 && arp.sha == %s && arp.spa == %s && arp.tpa == %s\n' \
            "$switch" "$port" "$mac" "$mac" "$ip" "$near"
    done <<EOF
$BLUE $VM1 fa:16:3e:10:00:05 192.168.10.5 192.168.10.6 fa:16:3e:10:00:06 fa:16:3e:aa:00:01
$BLUE $VM2 fa:16:3e:10:00:06 192.168.10.6 192.168.10.7 fa:16:3e:10:00:07 fa:16:3e:aa:00:01
$GREEN $VM4 fa:16:3e:20:00:05 192.168.20.5 192.168.20.6 fa:16:3e:20:00:06 fa:16:3e:aa:00:02
$VLAN $VM7 fa:16:3e:30:00:06 10.120.0.6 10.120.0.5 fa:16:3e:30:00:05 fa:16:3e:aa:00:03
EOF
}
