# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by lib.sh
# shellcheck disable=SC2016 # OVN names address sets with a dollar sign
# An OVN-Kubernetes cluster of three nodes, dual stack, shared gateway mode,
# seen from one worker: cluster router, join switch, a switch, a gateway
# router and an external switch per node, services as load balancers of a group,
# network policies, egress firewall, egress IP and egress QoS; and the bridge to
# the outside, breth0, with the flows that ovnkube writes itself.

TOPO_SUMMARY='OVN-Kubernetes worker: gateway router, 52 service LBs, network policies, egress IP/QoS, CoPP meters, breth0'
TOPO_HOST='ovn-worker2'
TOPO_SYSTEM_ID=7c6d1e90-3b52-4f08-a1d4-5e6f70810003
TOPO_OVN=yes
TOPO_UNDERLAY=breth0
TOPO_UNDERLAY_CIDR=172.18.0.4/24
TOPO_CENTRAL_CIDR=172.18.0.2/24
TOPO_OVS_SETTINGS=(
    # ovn-controller sets this too, but too late for the first feature probe
    other_config:vlan-limit=0
    'external_ids:ovn-remote="tcp:172.18.0.2:6642"'
    external_ids:ovn-encap-type=geneve
    external_ids:ovn-encap-ip=172.18.0.4
    'external_ids:ovn-bridge-mappings="physnet:breth0"'
    external_ids:ovn-monitor-all=true
    external_ids:ovn-openflow-probe-interval=180
    external_ids:ovn-remote-probe-interval=180000
    external_ids:ovn-enable-lflow-cache=true
    external_ids:ovn-ofctrl-wait-before-clear=0
)

# name, number (its pods' third octet, its address on the join switch), chassis
NODES=(
    "ovn-control-plane 1 7c6d1e90-3b52-4f08-a1d4-5e6f70810001 172.18.0.2"
    "ovn-worker 2 7c6d1e90-3b52-4f08-a1d4-5e6f70810002 172.18.0.3"
    "ovn-worker2 3 7c6d1e90-3b52-4f08-a1d4-5e6f70810003 172.18.0.4"
)
UPLINK_MAC=02:42:ac:12:00:04
POD_SUBNET=10.244.3.0/24
GATEWAY_MAC=02:42:ac:12:00:01

# namespace_pod, node's number, pod's number, interface (only on this node)
PODS=(
    "default_web-0 3 5 5f0c3a9b17de248"
    "default_web-1 3 6 91be04c6a7f3d25"
    "shop_cart-7d4f 3 7 c03d7e51f96ab48"
    "shop_db-0 3 8 e7a4509d3c61bf2"
    "kube-system_coredns-abc12 3 9 2b98f6e0d4c7a13"
    "monitoring_prom-0 3 10 d61f83a2b05e9c7"
    "default_web-2 2 5"
    "default_web-3 2 6"
    "shop_cart-9c2e 2 7"
    "kube-system_coredns-def34 1 9"
    "shop_db-1 1 8"
)

pod_mac() { printf '0a:58:0a:f4:%02x:%02x' "$1" "$2"; }
pod_ip() { printf '10.244.%d.%d' "$1" "$2"; }
pod_ip6() { printf 'fd00:10:244:%x::%x' "$1" "$2"; }

topo_node() {
    local pod name node number link
    ovs-vsctl add-br br-int -- set Bridge br-int fail_mode=secure datapath_type=system \
        other_config:disable-in-band=true other_config:hwaddr='"a2:13:c9:8b:be:04"' \
        -- add-br breth0 -- set Bridge breth0 datapath_type=system fail_mode=standalone \
        other_config:hwaddr="\"$UPLINK_MAC\"" external_ids:bridge-id=breth0 \
        external_ids:bridge-uplink=eth0 -- add-port breth0 eth0 \
        -- add-port br-int ovn-k8s-mp0 -- set Interface ovn-k8s-mp0 type=internal \
        mac='"0a:58:0a:f4:03:02"' external_ids:iface-id=k8s-$TOPO_HOST mtu_request=1400
    for pod in "${PODS[@]}"; do
        read -r name node number link <<<"$pod"
        [[ -n $link ]] || continue
        ovs-vsctl add-port br-int "$link" -- set Interface "$link" \
            external_ids:iface-id="$name" external_ids:sandbox="${link}0c1d2e3f" \
            external_ids:attached_mac="\"$(pod_mac "$node" "$number")\"" \
            external_ids:ip_addresses="\"$(pod_ip "$node" "$number")/24\""
    done
    # The kernel leaves the integration bridge's own port down.
    ovs-appctl netdev-dummy/set-admin-state br-int down >/dev/null
}

topo_logical() {
    local node name number chassis ip pod
    nb_cluster
    for node in "${NODES[@]}"; do
        read -r name number chassis ip <<<"$node"
        [[ $name == "$TOPO_HOST" ]] || add_chassis "$chassis" "$name" "$ip"
        nb_node "$name" "$number" "$chassis" "$ip"
    done
    nb_pods
    nb_services
    nb_policies
    nb_egress
    ovn-nbctl --timeout=$((20 * LAB_PATIENCE)) --wait=sb sync
    for pod in "${PODS[@]}"; do
        read -r name number _ <<<"$pod"
        case $number in
        1) bind_remote "$name" 7c6d1e90-3b52-4f08-a1d4-5e6f70810001 ;;
        2) bind_remote "$name" 7c6d1e90-3b52-4f08-a1d4-5e6f70810002 ;;
        esac
    done
    bind_remote k8s-ovn-control-plane 7c6d1e90-3b52-4f08-a1d4-5e6f70810001
    bind_remote k8s-ovn-worker 7c6d1e90-3b52-4f08-a1d4-5e6f70810002
    learn_mac rtoe-GR_$TOPO_HOST 172.18.0.1 $GATEWAY_MAC
    learn_mac rtoe-GR_$TOPO_HOST 172.18.0.3 02:42:ac:12:00:03
}

# Cluster router, join switch, and rate limits for what goes to ovn-controller.
nb_cluster() {
    local protocol
    local -a copp=()
    for protocol in arp arp-resolve bfd event-elb icmp4-error icmp6-error reject tcp-reset dhcpv4-opts; do
        copp+=(-- copp-add ovnkube-default "$protocol" "$protocol-rate-limiter")
        copp+=(-- meter-add "$protocol-rate-limiter" drop 25 pktps)
    done
    ovn-nbctl meter-add acl-logging drop 20 pktps 5 "${copp[@]}" >/dev/null
    ovn-nbctl \
        -- lr-add ovn_cluster_router -- set Logical_Router ovn_cluster_router \
        options:mcast_relay=true options:always_learn_from_arp_request=false \
        external_ids:k8s-cluster-router=yes \
        -- ls-add join \
        -- lrp-add ovn_cluster_router rtoj-ovn_cluster_router 0a:58:64:40:00:01 100.64.0.1/16 fd98::1/64 \
        -- lsp-add join jtor-ovn_cluster_router -- lsp-set-type jtor-ovn_cluster_router router \
        -- lsp-set-addresses jtor-ovn_cluster_router router \
        -- lsp-set-options jtor-ovn_cluster_router router-port=rtoj-ovn_cluster_router \
        -- lr-copp-add ovnkube-default ovn_cluster_router
}

nb_node() {
    local name=$1 number=$2 chassis=$3 ip=$4 hex gateway=GR_$1 mac
    hex=$(printf '%02x' "$number")
    mac=$(printf '02:42:ac:12:00:%02x' "${ip##*.}")
    ovn-nbctl \
        -- ls-add "$name" -- set Logical_Switch "$name" other_config:subnet="10.244.$number.0/24" \
        other_config:mcast_snoop=true other_config:mcast_querier=false \
        -- lrp-add ovn_cluster_router "rtos-$name" "0a:58:0a:f4:$hex:01" \
        "10.244.$number.1/24" "fd00:10:244:$number::1/64" \
        -- lrp-set-gateway-chassis "rtos-$name" "$chassis" 1 \
        -- lsp-add "$name" "stor-$name" -- lsp-set-type "stor-$name" router \
        -- lsp-set-addresses "stor-$name" router -- lsp-set-options "stor-$name" router-port="rtos-$name" \
        -- lsp-add "$name" "k8s-$name" \
        -- lsp-set-addresses "k8s-$name" "0a:58:0a:f4:$hex:02 10.244.$number.2 fd00:10:244:$number::2" \
        -- lr-add "$gateway" -- set Logical_Router "$gateway" options:chassis="$chassis" \
        options:lb_force_snat_ip=router_ip options:snat-ct-zone=0 \
        options:always_learn_from_arp_request=false options:dynamic_neigh_routers=true \
        options:mac_binding_age_threshold=300 external_ids:physical_ip="$ip" \
        -- lrp-add "$gateway" "rtoj-$gateway" "0a:58:64:40:00:$(printf '%02x' $((number + 1)))" \
        "100.64.0.$((number + 1))/16" "fd98::$((number + 1))/64" \
        -- lsp-add join "jtor-$gateway" -- lsp-set-type "jtor-$gateway" router \
        -- lsp-set-addresses "jtor-$gateway" router \
        -- lsp-set-options "jtor-$gateway" router-port="rtoj-$gateway" \
        -- lrp-add "$gateway" "rtoe-$gateway" "$mac" "$ip/24" "fc00:f853:ccd:e793::${ip##*.}/64" \
        -- set Logical_Router_Port "rtoe-$gateway" options:gateway_mtu=1400 \
        -- ls-add "ext_$name" \
        -- lsp-add "ext_$name" "breth0_$name" -- lsp-set-type "breth0_$name" localnet \
        -- lsp-set-addresses "breth0_$name" unknown \
        -- lsp-set-options "breth0_$name" network_name=physnet \
        -- lsp-add "ext_$name" "etor-$gateway" -- lsp-set-type "etor-$gateway" router \
        -- lsp-set-addresses "etor-$gateway" "$mac" \
        -- lsp-set-options "etor-$gateway" router-port="rtoe-$gateway" nat-addresses=router \
        exclude-lb-vips-from-garp=true \
        -- lr-route-add "$gateway" 0.0.0.0/0 172.18.0.1 "rtoe-$gateway" \
        -- lr-route-add "$gateway" ::/0 fc00:f853:ccd:e793::1 "rtoe-$gateway" \
        -- lr-route-add "$gateway" 10.244.0.0/16 100.64.0.1 \
        -- lr-route-add "$gateway" fd00:10:244::/48 fd98::1 \
        -- --policy=src-ip lr-route-add ovn_cluster_router "10.244.$number.0/24" "100.64.0.$((number + 1))" \
        -- --policy=src-ip lr-route-add ovn_cluster_router "fd00:10:244:$number::/64" "fd98::$((number + 1))" \
        -- lr-route-add ovn_cluster_router "100.64.0.$((number + 1))" "100.64.0.$((number + 1))" \
        -- lr-nat-add "$gateway" snat "$ip" 10.244.0.0/16 \
        -- lr-nat-add "$gateway" snat "fc00:f853:ccd:e793::${ip##*.}" fd00:10:244::/48 \
        -- lr-policy-add ovn_cluster_router 1004 \
        "inport == \"rtos-$name\" && ip4.dst == $ip /* $name */" reroute "10.244.$number.2" \
        -- lr-copp-add ovnkube-default "$gateway"
}

nb_pods() {
    local pod name node number switch
    local -a add=()
    for pod in "${PODS[@]}"; do
        read -r name node number _ <<<"$pod"
        read -r switch _ <<<"${NODES[node - 1]}"
        add+=(-- lsp-add "$switch" "$name" -- lsp-set-addresses "$name"
            "$(pod_mac "$node" "$number") $(pod_ip "$node" "$number") $(pod_ip6 "$node" "$number")"
            -- lsp-set-port-security "$name"
            "$(pod_mac "$node" "$number") $(pod_ip "$node" "$number") $(pod_ip6 "$node" "$number")"
            -- set Logical_Switch_Port "$name" external_ids:pod=true
            external_ids:namespace="${name%%_*}")
    done
    ovn-nbctl "${add[@]}"
}

# The backends of service N: none, one, several, of this node or of others.
backends() {
    local port=$2
    case $(($1 % 6)) in
    0) printf '10.244.3.5:%d,10.244.3.6:%d,10.244.2.5:%d,10.244.2.6:%d' "$port" "$port" "$port" "$port" ;;
    1) printf '10.244.3.7:%d,10.244.2.7:%d' "$port" "$port" ;;
    2) printf '10.244.3.8:%d' "$port" ;;
    3) printf '10.244.1.8:%d' "$port" ;;
    4) printf '10.244.3.9:%d,10.244.1.9:%d' "$port" "$port" ;;
    5) printf '10.244.2.5:%d,10.244.2.6:%d,10.244.3.10:%d' "$port" "$port" "$port" ;;
    esac
}

nb_services() {
    local n vip lb group='' node name number local_lbs='' options=() protocol ip
    local -a add=()
    for n in {1..40}; do
        vip=10.96.$((n / 10)).$((n + 10))
        options=(options:reject=true options:hairpin_snat_ip='"169.254.169.5 fd69::5"' options:skip_snat=false)
        protocol=tcp
        ((n % 8)) || protocol=udp
        ((n % 7)) || options+=(options:affinity_timeout=10800)
        ((n % 13)) || options+=(selection_fields='ip_src,ip_dst,tp_src')
        add+=(-- "--id=@s$n" create Load_Balancer "name=Service_default/svc-${n}_${protocol^^}_cluster"
            "protocol=$protocol" "vips=\"$vip:80\"=\"$(backends "$n" 8080)\",\"$vip:443\"=\"$(backends $((n + 1)) 8443)\""
            "external_ids=\"k8s.ovn.org/kind\"=Service,\"k8s.ovn.org/owner\"=\"default/svc-$n\"" "${options[@]}")
        group+=,@s$n
    done
    # without endpoints; the API server, whose endpoints are hosts; IPv6; SCTP
    for lb in 'no-endpoints tcp "10.96.9.9:80"=""' \
        'kubernetes tcp "10.96.0.1:443"="172.18.0.2:6443"' \
        'dns udp "10.96.0.10:53"="10.244.3.9:53,10.244.1.9:53"' \
        'dns-tcp tcp "10.96.0.10:53"="10.244.3.9:53,10.244.1.9:53"' \
        'web6 tcp "[fd00:10:96::20]:80"="[fd00:10:244:3::5]:8080,[fd00:10:244:2::5]:8080"' \
        'dns6 udp "[fd00:10:96::a]:53"="[fd00:10:244:3::9]:53,[fd00:10:244:1::9]:53"' \
        'sigtran sctp "10.96.9.20:3868"="10.244.3.7:3868,10.244.2.7:3868"' \
        'external tcp "192.0.2.80:80"="10.244.3.5:8080,10.244.2.5:8080"' \
        'sticky tcp "10.96.9.30:80"="10.244.3.5:8080,10.244.3.6:8080,10.244.2.5:8080"'; do
        read -r name protocol vip <<<"$lb"
        options=(options:reject=true options:hairpin_snat_ip='"169.254.169.5 fd69::5"')
        [[ $name != sticky ]] || options+=(options:affinity_timeout=600)
        add+=(-- "--id=@x${name//-/_}" create Load_Balancer "name=Service_kube-system/${name}_${protocol^^}_cluster"
            "protocol=$protocol" "vips=$vip" "${options[@]}")
        group+=,@x${name//-/_}
    done
    # Node ports: one load balancer per node, with the node's address.
    for node in "${NODES[@]}"; do
        read -r name number _ ip <<<"$node"
        add+=(-- "--id=@n$number" create Load_Balancer "name=Service_default/web_TCP_node_router+switch_$name"
            protocol=tcp options:reject=true options:hairpin_snat_ip='"169.254.169.5 fd69::5"'
            "vips=\"$ip:31000\"=\"10.244.3.5:8080,10.244.2.5:8080\",\"$ip:31001\"=\"10.244.3.7:8443\"")
    done
    add+=(-- --id=@group create Load_Balancer_Group name=clusterLBGroup "load_balancer=${group#,}")
    for node in "${NODES[@]}"; do
        read -r name number _ <<<"$node"
        add+=(-- add Logical_Switch "$name" load_balancer_group @group
            -- add Logical_Router "GR_$name" load_balancer_group @group
            -- add Logical_Switch "$name" load_balancer "@n$number"
            -- add Logical_Router "GR_$name" load_balancer "@n$number")
    done
    ovn-nbctl "${add[@]}" >/dev/null
}

nb_policies() {
    local node name number
    local -a add=()
    ovn-nbctl \
        -- create Address_Set name=a5154718082306775057 \
        addresses='10.244.3.5 10.244.3.6 10.244.2.5 10.244.2.6' \
        -- create Address_Set name=a11122233344455566677 addresses='10.244.3.7 10.244.2.7 10.244.3.10' \
        -- create Address_Set name=a99988877766655544433 addresses='"fd00:10:244:3::5" "fd00:10:244:3::7"' \
        -- pg-add a1001_shop_ingressDefaultDeny shop_cart-7d4f shop_db-0 shop_cart-9c2e shop_db-1 \
        -- pg-add a1002_shop_egressDefaultDeny shop_db-0 shop_db-1 \
        -- pg-add a1003_shop_db shop_db-0 shop_db-1 \
        -- pg-add a1004_shop_cart shop_cart-7d4f shop_cart-9c2e \
        -- pg-add clusterPortGroup -- pg-add clusterRtrPortGroup \
        -- --type=port-group --log --severity=alert --name=NP:shop:ingress --meter=acl-logging \
        acl-add a1001_shop_ingressDefaultDeny to-lport 1000 'outport == @a1001_shop_ingressDefaultDeny' drop \
        -- --type=port-group acl-add a1001_shop_ingressDefaultDeny to-lport 1001 \
        'outport == @a1001_shop_ingressDefaultDeny && (arp || nd)' allow \
        -- --type=port-group --log --severity=alert --name=NP:shop:egress --meter=acl-logging --apply-after-lb \
        acl-add a1002_shop_egressDefaultDeny from-lport 1000 'inport == @a1002_shop_egressDefaultDeny' drop \
        -- --type=port-group --apply-after-lb acl-add a1002_shop_egressDefaultDeny from-lport 1001 \
        'inport == @a1002_shop_egressDefaultDeny && (arp || nd)' allow \
        -- --type=port-group --log --severity=info --name=NP:shop:db --meter=acl-logging \
        acl-add a1003_shop_db to-lport 1001 \
        'ip4.src == {$a11122233344455566677, $a5154718082306775057} && tcp.dst == {5432, 9187, 8080, 8443} && outport == @a1003_shop_db' allow-related \
        -- --type=port-group --apply-after-lb acl-add a1003_shop_db from-lport 1001 \
        'ip4.dst == $a11122233344455566677 && tcp && 8000 <= tcp.dst <= 8999 && inport == @a1003_shop_db' allow-related \
        -- --type=port-group --apply-after-lb acl-add a1003_shop_db from-lport 1001 \
        'udp.dst == 53 && inport == @a1003_shop_db' allow-related \
        -- --type=port-group acl-add a1004_shop_cart to-lport 1001 \
        'ip4.src == 10.244.0.0/16 && ip4.src != {10.244.3.8/32} && tcp.dst == {8080, 8443} && outport == @a1004_shop_cart' allow-related \
        -- --type=port-group acl-add a1004_shop_cart to-lport 1001 \
        'ip6.src == $a99988877766655544433 && tcp.dst == {8080, 8443} && outport == @a1004_shop_cart' allow-related \
        -- --type=port-group acl-add a1004_shop_cart to-lport 1001 \
        'icmp4 && outport == @a1004_shop_cart' allow-related >/dev/null
    for node in "${NODES[@]}"; do
        read -r name number _ <<<"$node"
        # Traffic of the node itself to its pods; and the egress firewall.
        add+=(-- acl-add "$name" to-lport 1001 "ip4.src==10.244.$number.2" allow-related
            -- --apply-after-lb acl-add "$name" from-lport 9999
            '(ip4.dst == 203.0.113.0/24 && ip4.dst != 203.0.113.53) && ip4.src == $a5154718082306775057' drop
            -- --apply-after-lb acl-add "$name" from-lport 9998
            '(ip4.dst == 203.0.113.53) && ip4.src == $a5154718082306775057' allow)
    done
    ovn-nbctl "${add[@]}"
}

# Egress IP: web-0 uses this node's address, shop_cart another node's; egress
# QoS: DSCP by namespace; an external gateway with symmetric replies.
nb_egress() {
    ovn-nbctl \
        -- lr-policy-add ovn_cluster_router 102 'ip4.src == 10.244.0.0/16 && ip4.dst == 10.244.0.0/16' allow \
        -- lr-policy-add ovn_cluster_router 102 'ip4.src == 10.244.0.0/16 && ip4.dst == 100.64.0.0/16' allow \
        -- lr-policy-add ovn_cluster_router 100 'ip4.src == 10.244.3.5' reroute 100.64.0.4 \
        -- lr-policy-add ovn_cluster_router 100 'ip4.src == 10.244.3.7' reroute 100.64.0.3 \
        -- lr-nat-add GR_ovn-worker2 snat 172.18.0.100 10.244.3.5 \
        -- lr-nat-add GR_ovn-worker snat 172.18.0.101 10.244.3.7 \
        -- --policy=src-ip --ecmp-symmetric-reply lr-route-add GR_ovn-worker2 10.244.3.10/32 172.18.0.200 rtoe-GR_ovn-worker2 \
        -- --policy=src-ip --ecmp-symmetric-reply lr-route-add GR_ovn-worker2 10.244.3.10/32 172.18.0.201 rtoe-GR_ovn-worker2 \
        -- lr-policy-add ovn_cluster_router 501 'ip4.src == 10.244.3.10 && ip4.dst != 10.244.0.0/16' reroute 100.64.0.4 \
        -- qos-add ovn-worker2 to-lport 1000 'ip4.dst == 192.0.2.0/24 && ip4.src == $a5154718082306775057' dscp=46 \
        -- qos-add ovn-worker2 from-lport 999 'ip4.src == $a11122233344455566677' dscp=26 \
        -- qos-add ovn-worker2 from-lport 998 'inport == "monitoring_prom-0"' rate=50000 burst=10000
}

topo_finish() {
    local host patch uplink
    patch=$(ofport "patch-breth0_$TOPO_HOST-to-br-int")
    uplink=$(ofport eth0)
    host=172.18.0.4
    breth0_flows "$uplink" "$patch" $host |
        ovs-ofctl -O OpenFlow13 --bundle replace-flows breth0 -
    add_learned breth0 eth0 0 $GATEWAY_MAC
    add_learned breth0 eth0 0 02:42:ac:12:00:03
    # The gateway router announces the node's address, from behind the patch
    # port.
    wait_for_macs breth0 $UPLINK_MAC
}

topo_packets() {
    local up=in_port=@eth0@ mp0=in_port=@ovn-k8s-mp0@ new='--ct-next trk,new' est='--ct-next trk,est'
    local web0=in_port=@5f0c3a9b17de248@ w0='dl_src=0a:58:0a:f4:03:05,nw_src=10.244.3.5'
    local web1=in_port=@91be04c6a7f3d25@ w1='dl_src=0a:58:0a:f4:03:06,nw_src=10.244.3.6'
    local cart=in_port=@c03d7e51f96ab48@ ca='dl_src=0a:58:0a:f4:03:07,nw_src=10.244.3.7'
    local db=in_port=@e7a4509d3c61bf2@ d='dl_src=0a:58:0a:f4:03:08,nw_src=10.244.3.8'
    local dns=in_port=@2b98f6e0d4c7a13@ prom=in_port=@d61f83a2b05e9c7@
    local p='dl_src=0a:58:0a:f4:03:0a,nw_src=10.244.3.10'
    local gw=dl_dst=0a:58:0a:f4:03:01 all=dl_dst=ff:ff:ff:ff:ff:ff host=dl_dst=$UPLINK_MAC
    local from=dl_src=$GATEWAY_MAC c8080=tp_src=4000,tp_dst=8080,nw_ttl=64
    local worker master keys keys_join
    worker="in_port=@$(tunnel_to 172.18.0.3)@,tun_src=172.18.0.3,tun_dst=172.18.0.4"
    master="in_port=@$(tunnel_to 172.18.0.2)@,tun_src=172.18.0.2,tun_dst=172.18.0.4"
    keys=$(tunnel_keys ovn-worker2 stor-ovn-worker2 default_web-0)
    keys_join=$(tunnel_keys join jtor-ovn_cluster_router jtor-GR_ovn-worker2)
    cat <<EOF
# pod to pod, this node and others
br-int||$web0,tcp,dl_dst=0a:58:0a:f4:03:06,$w0,nw_dst=10.244.3.6,$c8080
br-int|$est|$web0,tcp,dl_dst=0a:58:0a:f4:03:06,$w0,nw_dst=10.244.3.6,$c8080
br-int|$est,rpl $est,rpl|$web1,tcp,dl_dst=0a:58:0a:f4:03:05,$w1,nw_dst=10.244.3.5,tp_src=8080,tp_dst=4000,nw_ttl=64
br-int|$new $new $new|$web0,tcp,$gw,$w0,nw_dst=10.244.2.5,$c8080
br-int|$est $est $est|$web0,icmp,$gw,$w0,nw_dst=10.244.1.9,icmp_type=8,icmp_code=0,nw_ttl=64
br-int||$web1,tcp6,dl_dst=0a:58:0a:f4:03:05,dl_src=0a:58:0a:f4:03:06,ipv6_src=fd00:10:244:3::6,ipv6_dst=fd00:10:244:3::5,$c8080
br-int||$web1,tcp6,$gw,dl_src=0a:58:0a:f4:03:06,ipv6_src=fd00:10:244:3::6,ipv6_dst=fd00:10:244:2::5,$c8080
br-int||$web1,tcp,dl_dst=0a:58:0a:f4:03:99,$w1,nw_dst=10.244.3.153,$c8080
br-int||$web1,tcp,$gw,$w1,nw_dst=10.244.2.77,$c8080
br-int||$web1,tcp,$gw,dl_src=0a:58:0a:f4:03:06,nw_src=10.244.3.66,nw_dst=10.244.2.5,$c8080
br-int||$web1,tcp,$gw,$w1,nw_dst=10.244.2.5,tp_src=4000,tp_dst=8080,nw_ttl=1
# network policies
br-int||$web0,tcp,dl_dst=0a:58:0a:f4:03:08,$w0,nw_dst=10.244.3.8,tp_src=4000,tp_dst=5432,nw_ttl=64
br-int|$new $new|$cart,tcp,dl_dst=0a:58:0a:f4:03:08,$ca,nw_dst=10.244.3.8,tp_src=4000,tp_dst=9187,nw_ttl=64
br-int|$new $new|$web0,tcp,dl_dst=0a:58:0a:f4:03:08,$w0,nw_dst=10.244.3.8,tp_src=4000,tp_dst=22,nw_ttl=64
br-int|$est $est|$dns,udp,dl_dst=0a:58:0a:f4:03:08,dl_src=0a:58:0a:f4:03:09,nw_src=10.244.3.9,nw_dst=10.244.3.8,udp_src=53,udp_dst=4000,nw_ttl=64
br-int||$db,tcp,dl_dst=0a:58:0a:f4:03:07,$d,nw_dst=10.244.3.7,$c8080
br-int||$db,tcp,dl_dst=0a:58:0a:f4:03:07,$d,nw_dst=10.244.3.7,tp_src=4000,tp_dst=9999,nw_ttl=64
br-int||$db,tcp,$gw,$d,nw_dst=192.0.2.9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int|$new|$db,udp,$gw,$d,nw_dst=10.96.0.10,udp_src=4000,udp_dst=53,nw_ttl=64
br-int|$new $new|$web1,tcp,dl_dst=0a:58:0a:f4:03:07,$w1,nw_dst=10.244.3.7,tp_src=4000,tp_dst=8443,nw_ttl=64
br-int||$web0,tcp6,dl_dst=0a:58:0a:f4:03:07,dl_src=0a:58:0a:f4:03:05,ipv6_src=fd00:10:244:3::5,ipv6_dst=fd00:10:244:3::7,$c8080
br-int||$web1,icmp,dl_dst=0a:58:0a:f4:03:07,$w1,nw_dst=10.244.3.7,icmp_type=8,icmp_code=0,nw_ttl=64
# egress firewall, QoS, egress IP, external gateways
br-int|$new|$web0,tcp,$gw,$w0,nw_dst=203.0.113.9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int|$new|$web0,udp,$gw,$w0,nw_dst=203.0.113.53,udp_src=4000,udp_dst=53,nw_ttl=64
br-int|$new $new|$web0,tcp,$gw,$w0,nw_dst=192.0.2.9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int|$new $new|$web1,tcp,$gw,$w1,nw_dst=192.0.2.9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int|$new $new|$cart,tcp,$gw,$ca,nw_dst=198.51.100.9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int|$new $new|$prom,tcp,$gw,$p,nw_dst=198.51.100.9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int|$est $est|$prom,udp,$gw,$p,nw_dst=198.51.100.9,udp_src=4000,udp_dst=123,nw_ttl=64
br-int||$web1,tcp6,$gw,dl_src=0a:58:0a:f4:03:06,ipv6_src=fd00:10:244:3::6,ipv6_dst=2001:db8::9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int||$web1,icmp,$gw,$w1,nw_dst=172.18.0.1,icmp_type=8,icmp_code=0,nw_ttl=64
br-int||$web1,tcp,$gw,$w1,nw_dst=172.18.0.4,tp_src=4000,tp_dst=10250,nw_ttl=64
br-int||$web1,tcp,$gw,$w1,nw_dst=172.18.0.3,tp_src=4000,tp_dst=10250,nw_ttl=64
# services
br-int||$web0,tcp,$gw,$w0,nw_dst=10.96.0.11,tp_src=4001,tp_dst=80,nw_ttl=64
br-int|$new $new|$web0,tcp,$gw,$w0,nw_dst=10.96.0.12,tp_src=4002,tp_dst=80,nw_ttl=64
br-int|$new|$web0,tcp,$gw,$w0,nw_dst=10.96.0.16,tp_src=4003,tp_dst=80,nw_ttl=64
br-int|$new|$web0,tcp,$gw,$w0,nw_dst=10.96.0.17,tp_src=4004,tp_dst=80,nw_ttl=64
br-int|$new|$web1,tcp,$gw,$w1,nw_dst=10.96.1.23,tp_src=4005,tp_dst=443,nw_ttl=64
br-int|$new|$web1,tcp,$gw,$w1,nw_dst=10.96.1.23,tp_src=4006,tp_dst=443,nw_ttl=64
br-int|$new|$web1,udp,$gw,$w1,nw_dst=10.96.0.18,udp_src=4006,udp_dst=80,nw_ttl=64
br-int||$web1,tcp,$gw,$w1,nw_dst=10.96.9.9,tp_src=4007,tp_dst=80,nw_ttl=64
br-int||$web1,tcp,$gw,$w1,nw_dst=10.96.0.1,tp_src=4008,tp_dst=443,nw_ttl=64
br-int|$new|$web1,udp,$gw,$w1,nw_dst=10.96.0.10,udp_src=4009,udp_dst=53,nw_ttl=64
br-int|$new|$web1,tcp6,$gw,dl_src=0a:58:0a:f4:03:06,ipv6_src=fd00:10:244:3::6,ipv6_dst=fd00:10:96::20,tp_src=4010,tp_dst=80,nw_ttl=64
br-int|$new|$cart,sctp,$gw,$ca,nw_dst=10.96.9.20,sctp_src=4011,sctp_dst=3868,nw_ttl=64
br-int|$new|$web1,tcp,$gw,$w1,nw_dst=10.96.9.30,tp_src=4012,tp_dst=80,nw_ttl=64
br-int|$est,dnat|$web1,tcp,$gw,$w1,nw_dst=10.96.9.30,tp_src=4012,tp_dst=80,nw_ttl=64
br-int||$web1,tcp,$gw,$w1,nw_dst=172.18.0.4,tp_src=4013,tp_dst=31000,nw_ttl=64
br-int||$web1,tcp,$gw,$w1,nw_dst=10.96.200.200,tp_src=4014,tp_dst=80,nw_ttl=64
br-int|$new $est|$db,tcp,$gw,$d,nw_dst=10.96.0.12,tp_src=4015,tp_dst=80,nw_ttl=64
# ARP, ND, multicast
br-int||$web0,arp,$all,dl_src=0a:58:0a:f4:03:05,arp_op=1,arp_spa=10.244.3.5,arp_tpa=10.244.3.1,arp_sha=0a:58:0a:f4:03:05
br-int||$web0,arp,$all,dl_src=0a:58:0a:f4:03:05,arp_op=1,arp_spa=10.244.3.5,arp_tpa=10.244.3.6,arp_sha=0a:58:0a:f4:03:05
br-int||$web0,arp,$all,dl_src=0a:58:0a:f4:03:05,arp_op=1,arp_spa=10.244.3.5,arp_tpa=10.244.3.99,arp_sha=0a:58:0a:f4:03:05
br-int||$web0,arp,$all,dl_src=0a:58:0a:f4:03:05,arp_op=1,arp_spa=10.244.3.66,arp_tpa=10.244.3.1,arp_sha=0a:58:0a:f4:03:05
br-int||$web0,icmp6,dl_dst=33:33:ff:00:00:01,dl_src=0a:58:0a:f4:03:05,ipv6_src=fd00:10:244:3::5,ipv6_dst=ff02::1:ff00:1,icmpv6_type=135,icmpv6_code=0,nd_target=fd00:10:244:3::1,nd_sll=0a:58:0a:f4:03:05,nw_ttl=255
br-int||$web0,udp6,dl_dst=33:33:00:00:00:fb,dl_src=0a:58:0a:f4:03:05,ipv6_src=fe80::858:aff:fef4:305,ipv6_dst=ff02::fb,udp_src=5353,udp_dst=5353,nw_ttl=255
br-int||$web0,ip,nw_proto=2,dl_dst=01:00:5e:00:00:16,$w0,nw_dst=224.0.0.22,nw_ttl=1
br-int||$web0,udp,dl_dst=01:00:5e:01:01:01,$w0,nw_dst=239.1.1.1,udp_src=5,udp_dst=6,nw_ttl=64
# from the node's own port, and from other nodes
br-int|$new $new|$mp0,tcp,dl_dst=0a:58:0a:f4:03:05,dl_src=0a:58:0a:f4:03:02,nw_src=10.244.3.2,nw_dst=10.244.3.5,$c8080
br-int|$new $new|$mp0,tcp,dl_dst=0a:58:0a:f4:03:08,dl_src=0a:58:0a:f4:03:02,nw_src=10.244.3.2,nw_dst=10.244.3.8,tp_src=4000,tp_dst=9,nw_ttl=64
br-int||$mp0,tcp,$gw,dl_src=0a:58:0a:f4:03:02,nw_src=10.244.3.2,nw_dst=10.244.2.5,$c8080
br-int|$new|$worker,$keys,tcp,dl_dst=0a:58:0a:f4:03:05,dl_src=0a:58:0a:f4:03:01,nw_src=10.244.2.5,nw_dst=10.244.3.5,tp_src=4000,tp_dst=8080,nw_ttl=63
br-int||$master,$keys,icmp,dl_dst=0a:58:0a:f4:03:05,dl_src=0a:58:0a:f4:03:01,nw_src=10.244.1.9,nw_dst=10.244.3.5,icmp_type=8,icmp_code=0,nw_ttl=63
br-int|$new $new|$worker,$keys_join,tcp,dl_dst=0a:58:64:40:00:04,dl_src=0a:58:64:40:00:01,nw_src=10.244.2.5,nw_dst=198.51.100.9,tp_src=4000,tp_dst=443,nw_ttl=63
# the bridge to the outside
breth0||$up,tcp,$host,$from,nw_src=172.18.0.1,nw_dst=172.18.0.4,tp_src=777,tp_dst=22,nw_ttl=64
breth0|$est|$up,tcp,$host,$from,nw_src=172.18.0.1,nw_dst=172.18.0.4,tp_src=777,tp_dst=22,nw_ttl=64
breth0|$new $new $new|$up,tcp,$host,$from,nw_src=172.18.0.1,nw_dst=172.18.0.4,tp_src=777,tp_dst=31000,nw_ttl=64
breth0|$new|$up,tcp,$host,$from,nw_src=172.18.0.1,nw_dst=172.18.0.4,tp_src=777,tp_dst=31001,nw_ttl=64
breth0|$new|$up,tcp,$host,$from,nw_src=198.51.100.9,nw_dst=192.0.2.80,tp_src=777,tp_dst=80,nw_ttl=64
breth0||$up,udp,$host,dl_src=02:42:ac:12:00:03,nw_src=172.18.0.3,nw_dst=172.18.0.4,udp_src=777,udp_dst=6081,nw_ttl=64
breth0||$up,udp,dl_dst=02:42:ac:12:00:77,dl_src=02:42:ac:12:00:03,nw_src=172.18.0.3,nw_dst=172.18.0.77,udp_src=777,udp_dst=6081,nw_ttl=64
breth0||$up,tcp,$host,$from,nw_src=172.18.0.1,nw_dst=10.244.3.5,tp_src=777,tp_dst=8080,nw_ttl=64
breth0||$up,tcp6,$host,$from,ipv6_src=fc00:f853:ccd:e793::1,ipv6_dst=fc00:f853:ccd:e793::4,tp_src=777,tp_dst=22,nw_ttl=64
breth0||$up,arp,$all,$from,arp_op=1,arp_spa=172.18.0.1,arp_tpa=172.18.0.4,arp_sha=$GATEWAY_MAC
breth0||$up,arp,$host,$from,arp_op=2,arp_spa=172.18.0.1,arp_tpa=172.18.0.4,arp_sha=$GATEWAY_MAC
breth0||$up,arp,$all,$from,arp_op=1,arp_spa=172.18.0.1,arp_tpa=192.0.2.80,arp_sha=$GATEWAY_MAC
breth0||$up,icmp6,dl_dst=33:33:00:00:00:01,$from,ipv6_src=fe80::1,ipv6_dst=ff02::1,icmpv6_type=134,icmpv6_code=0,nw_ttl=255
breth0||$up,ip,nw_proto=2,dl_dst=01:00:5e:00:00:16,$from,nw_src=172.18.0.1,nw_dst=224.0.0.22,nw_ttl=1
breth0||in_port=LOCAL,tcp,dl_dst=$GATEWAY_MAC,dl_src=$UPLINK_MAC,nw_src=172.18.0.4,nw_dst=10.96.0.11,tp_src=777,tp_dst=80,nw_ttl=64
breth0|$new $new $new $new|in_port=LOCAL,tcp,dl_dst=$GATEWAY_MAC,dl_src=$UPLINK_MAC,nw_src=10.244.3.2,nw_dst=10.96.0.11,tp_src=777,tp_dst=80,nw_ttl=64
breth0||in_port=LOCAL,tcp6,dl_dst=$GATEWAY_MAC,dl_src=$UPLINK_MAC,ipv6_src=fc00:f853:ccd:e793::4,ipv6_dst=fd00:10:96::20,tp_src=777,tp_dst=80,nw_ttl=64
breth0||in_port=LOCAL,udp,dl_dst=02:42:ac:12:00:03,dl_src=$UPLINK_MAC,nw_src=172.18.0.4,nw_dst=172.18.0.3,udp_src=777,udp_dst=6081,nw_ttl=64
breth0||in_port=LOCAL,tcp,dl_dst=$GATEWAY_MAC,dl_src=$UPLINK_MAC,nw_src=172.18.0.4,nw_dst=172.18.0.1,tp_src=777,tp_dst=80,nw_ttl=64
breth0||in_port=LOCAL,arp,dl_dst=$GATEWAY_MAC,dl_src=$UPLINK_MAC,arp_op=2,arp_spa=172.18.0.4,arp_tpa=172.18.0.1,arp_sha=$UPLINK_MAC
breth0||in_port=LOCAL,arp,$all,dl_src=$UPLINK_MAC,arp_op=1,arp_spa=172.18.0.4,arp_tpa=172.18.0.9,arp_sha=$UPLINK_MAC
EOF
}

# From the first pods of this node to each other pod, and outside.
topo_logical_packets() {
    local pod other name node number there place to mac
    for pod in "${PODS[@]:0:4}"; do
        read -r name node number _ <<<"$pod"
        for other in "${PODS[@]}"; do
            read -r _ place there _ <<<"$other"
            [[ $place.$there != "$node.$number" ]] || continue
            to=$(pod_ip "$place" "$there")
            mac=0a:58:0a:f4:03:01
            [[ $place != "$node" ]] || mac=$(pod_mac "$place" "$there")
            logical_packet "$TOPO_HOST" "$name" "$(pod_mac "$node" "$number")" "$mac" \
                "$(pod_ip "$node" "$number")" "$to" 'tcp.src == 4000 && tcp.dst == 8080'
        done
        for to in 203.0.113.9 172.18.0.3 10.244.2.77 10.245.0.99; do
            logical_packet "$TOPO_HOST" "$name" "$(pod_mac "$node" "$number")" 0a:58:0a:f4:03:01 \
                "$(pod_ip "$node" "$number")" $to 'udp.src == 4000 && udp.dst == 53'
        done
        logical_packet "$TOPO_HOST" "$name" "$(pod_mac "$node" "$number")" 0a:58:0a:f4:03:01 \
            "$(pod_ip6 "$node" "$number")" "$(pod_ip6 2 5)" 'tcp.src == 4000 && tcp.dst == 8080'
    done
}
