# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by set.sh and lib.sh
# shellcheck disable=SC2016 # OVN names address sets with a dollar sign
# An OVN-Kubernetes cluster with interconnect: each of three workers is a zone with its
# own databases, and a transit switch joins the zones. Shared gateway mode, dual stack.
# Names and external_ids are those of ovnkube.

SET_SUMMARY='OVN-Kubernetes with interconnect: three zones, services, network policies, egress IP'
SET_NODES=(worker1 worker2 worker3)
SET_NETWORKS=(underlay)
SET_CENTRAL=each
SET_ZONES=(64000 64001 64002 64003)

declare -gA CHASSIS=(
    [worker1]=7c6d1e90-3b52-4f08-a1d4-5e6f70810011
    [worker2]=7c6d1e90-3b52-4f08-a1d4-5e6f70810012
    [worker3]=7c6d1e90-3b52-4f08-a1d4-5e6f70810013
)

# namespace_pod, number of its node, last octet
PODS=(
    'ns1_web-0 1 5'
    'ns1_client-0 1 6'
    'ns3_eip-0 1 7'
    'ns1_web-1 2 5'
    'ns2_db-0 2 6'
    'ns2_db-1 3 5'
    'ns3_open-0 3 6'
    'kube-system_dns-0 3 7'
)
NODE_PREFIX6=fc00:f853:ccd:e793

number() { printf '%s' "${1#worker}"; }
node_ip() { printf '172.18.0.%d' $(($1 + 1)); }
node_mac() { printf '02:42:ac:12:00:%02x' $(($1 + 1)); }
pod_mac() { printf '0a:58:0a:f4:%02x:%02x' "$1" "$2"; }
pod_addresses() { printf '%s 10.244.%d.%d fd00:10:244:%d::%d' "$(pod_mac "$1" "$2")" "$1" "$2" "$1" "$2"; }

node_identity() {
    NUMBER=$(number "$1")
    TOPO_HOST=$1
    TOPO_SYSTEM_ID=${CHASSIS[$1]}
    TOPO_REMOTE=unix:/var/run/ovn/ovnsb_db.sock
    UPLINK_MAC=$(node_mac "$NUMBER")
    POD_SUBNET=10.244.$NUMBER.0/24
    TOPO_OVS_SETTINGS=(
        other_config:vlan-limit=0
        external_ids:ovn-remote="\"unix:$SET/nodes/$1/ovn/ovnsb_db.sock\""
        external_ids:ovn-encap-type=geneve
        external_ids:ovn-encap-ip="$(node_ip "$NUMBER")"
        external_ids:ovn-is-interconn=true
        'external_ids:ovn-bridge-mappings="physnet:breth0"'
        external_ids:ovn-monitor-all=true
        external_ids:ovn-openflow-probe-interval=0
        external_ids:ovn-enable-lflow-cache=true
    )
}

set_fabric() {
    local node
    for node in "${SET_NODES[@]}"; do
        fabric_wire underlay "$node" eth0
    done
    fabric_outside underlay ext0
}

node_switch() {
    local pod name node octet id other
    add_bridge br-int fail_mode=secure other_config:disable-in-band=true
    add_bridge breth0 fail_mode=standalone other_config:mac-aging-time=3600 \
        external_ids:bridge-id=breth0 external_ids:bridge-uplink=eth0
    take_down br-int
    add_local breth0 "$UPLINK_MAC"
    add_wire breth0 eth0 uplink
    tunnel_address breth0 "$(node_ip "$NUMBER")/24"
    add_port br-int ovn-k8s-mp0 host "$NODE:ovn-k8s-mp0" type=internal mtu_request=1400 \
        mac="\"$(pod_mac "$NUMBER" 2)\"" external_ids:iface-id="k8s-$NODE"
    for pod in "${PODS[@]}"; do
        read -r name node octet <<<"$pod"
        [[ $node == "$NUMBER" ]] || continue
        id=$(made_uuid "$name")
        id=${id//-/}
        add_port br-int "${id:0:15}" edge "${name/_//}" mtu_request=1400 external_ids:iface-id="$name" \
            external_ids:iface-id-ver="$(made_uuid "uid-$name")" external_ids:sandbox="$id" external_ids:attached_mac="\"$(pod_mac "$node" "$octet")\"" \
            external_ids:ip_addresses="\"10.244.$node.$octet/24\""
    done
    for other in 1 2 3; do
        ((other == NUMBER)) || meet breth0 "$(node_ip $other)" "$(node_mac $other)"
    done
}

node_finish() {
    breth0_flows "$(ofport eth0)" "$(ofport "patch-breth0_$NODE-to-br-int")" "$(node_ip "$NUMBER")" |
        ovs-ofctl -O OpenFlow13 --bundle replace-flows breth0 -
}

set_logical() { on_each_node zone_logical; }

zone_logical() {
    local other
    for other in "${SET_NODES[@]}"; do
        [[ $other == "$NODE" ]] || {
            add_chassis "${CHASSIS[$other]}" "$other" "$(node_ip "$(number "$other")")"
            ovn-sbctl set Chassis "${CHASSIS[$other]}" other_config:is-remote=true
        }
    done
    NB=()
    nb_cluster
    nb_gateway
    nb_pods
    ovn-nbctl "${NB[@]}" >/dev/null
    NB=()
    nb_services
    ovn-nbctl "${NB[@]}" >/dev/null
    NB=()
    nb_policies
    nb_egress
    ovn-nbctl "${NB[@]}" >/dev/null
    publish_northbound
    ovn-nbctl --timeout=$((20 * LAB_PATIENCE)) --wait=sb sync
    for other in "${SET_NODES[@]}"; do
        [[ $other == "$NODE" ]] || bind_remote "tstor-$other" "${CHASSIS[$other]}"
    done
}

# join_router ROUTER PORT MAC SWITCH ADDRESSES...: a router port and its side of the switch.
join_router() {
    local other=${2/rto/}
    other=${other%%-*}tor-${2#*-}
    NB+=(-- lrp-add "$1" "$2" "$3" "${@:5}"
        -- lsp-add "$4" "$other" -- lsp-set-type "$other" router -- lsp-set-addresses "$other" router
        -- lsp-set-options "$other" router-port="$2")
}

nb_cluster() {
    local n=$NUMBER other o
    NB+=(-- set NB_Global . name="$NODE" options:mac_prefix=0a:58:0a options:northd_probe_interval=5000
        -- lr-add ovn_cluster_router -- set Logical_Router ovn_cluster_router
        options:always_learn_from_arp_request=false external_ids:k8s-cluster-router=yes
        -- ls-add join
        -- ls-add "$NODE" -- set Logical_Switch "$NODE" other_config:subnet="10.244.$n.0/24"
        -- ls-add transit_switch -- set Logical_Switch transit_switch other_config:interconn-ts=transit_switch
        other_config:requested-tnl-key=16711683)
    join_router ovn_cluster_router rtos-"$NODE" "$(pod_mac "$n" 1)" "$NODE" "10.244.$n.1/24" "fd00:10:244:$n::1/64"
    join_router ovn_cluster_router rtoj-ovn_cluster_router 0a:58:64:40:00:01 join 100.64.0.1/16 fd98::1/64
    join_router ovn_cluster_router rtots-"$NODE" "0a:58:64:58:00:0$((n + 1))" transit_switch "100.88.0.$((n + 1))/16" "fd97::$((n + 1))/64"
    NB+=(-- lrp-set-gateway-chassis rtos-"$NODE" "$TOPO_SYSTEM_ID" 1
        -- set Logical_Router_Port rtots-"$NODE" options:requested-tnl-key="$((n + 1))"
        -- set Logical_Switch_Port tstor-"$NODE" options:requested-tnl-key="$((n + 1))"
        -- lsp-add "$NODE" "k8s-$NODE" -- lsp-set-addresses "k8s-$NODE" "$(pod_addresses "$n" 2)")
    for other in "${SET_NODES[@]}"; do
        [[ $other != "$NODE" ]] || continue
        o=$(number "$other")
        NB+=(-- lsp-add transit_switch "tstor-$other" -- lsp-set-type "tstor-$other" remote
            -- lsp-set-addresses "tstor-$other" "0a:58:64:58:00:0$((o + 1)) 100.88.0.$((o + 1))/16 fd97::$((o + 1))/64"
            -- set Logical_Switch_Port "tstor-$other" external_ids:node="$other"
            options:requested-tnl-key="$((o + 1))" options:requested-chassis="$other"
            -- lr-route-add ovn_cluster_router "10.244.$o.0/24" "100.88.0.$((o + 1))"
            -- lr-route-add ovn_cluster_router "fd00:10:244:$o::/64" "fd97::$((o + 1))"
            -- lr-route-add ovn_cluster_router "100.64.0.$((o + 1))/32" "100.88.0.$((o + 1))"
            -- lr-route-add ovn_cluster_router "fd98::$((o + 1))/128" "fd97::$((o + 1))")
    done
}

nb_gateway() {
    local n=$NUMBER gr=GR_$NODE
    NB+=(-- lr-add "$gr" -- set Logical_Router "$gr" options:chassis="$TOPO_SYSTEM_ID"
        options:lb_force_snat_ip=router_ip options:snat-ct-zone=0
        options:always_learn_from_arp_request=false options:dynamic_neigh_routers=true
        external_ids:physical_ip="$(node_ip "$n")" external_ids:physical_ips="$(node_ip "$n")"
        -- ls-add "ext_$NODE")
    join_router "$gr" rtoj-"$gr" "0a:58:64:40:00:0$((n + 1))" join "100.64.0.$((n + 1))/16" "fd98::$((n + 1))/64"
    NB+=(-- lrp-add "$gr" rtoe-"$gr" "$UPLINK_MAC" "$(node_ip "$n")/24" "$NODE_PREFIX6::$((n + 1))/64"
        -- set Logical_Router_Port rtoe-"$gr" options:gateway_mtu=1400
        -- lsp-add "ext_$NODE" "etor-$gr" -- lsp-set-type "etor-$gr" router -- lsp-set-addresses "etor-$gr" "$UPLINK_MAC"
        -- lsp-set-options "etor-$gr" router-port=rtoe-"$gr" nat-addresses=router exclude-lb-vips-from-garp=true
        -- lsp-add "ext_$NODE" "breth0_$NODE" -- lsp-set-type "breth0_$NODE" localnet
        -- lsp-set-addresses "breth0_$NODE" unknown -- lsp-set-options "breth0_$NODE" network_name=physnet
        -- lr-route-add "$gr" 0.0.0.0/0 172.18.0.1 rtoe-"$gr"
        -- lr-route-add "$gr" ::/0 "$NODE_PREFIX6::1" rtoe-"$gr"
        -- lr-route-add "$gr" 10.244.0.0/16 100.64.0.1
        -- lr-route-add "$gr" fd00:10:244::/48 fd98::1
        -- --policy=src-ip lr-route-add ovn_cluster_router "10.244.$n.0/24" "100.64.0.$((n + 1))"
        -- --policy=src-ip lr-route-add ovn_cluster_router "fd00:10:244:$n::/64" "fd98::$((n + 1))"
        -- lr-nat-add "$gr" snat "$(node_ip "$n")" 10.244.0.0/16
        -- lr-nat-add "$gr" snat "$NODE_PREFIX6::$((n + 1))" fd00:10:244::/48
        -- lr-policy-add ovn_cluster_router 1004
        "inport == \"rtos-$NODE\" && ip4.dst == $(node_ip "$n") /* $NODE */" reroute "10.244.$n.2")
}

nb_pods() {
    local pod name node octet
    for pod in "${PODS[@]}"; do
        read -r name node octet <<<"$pod"
        [[ $node == "$NUMBER" ]] || continue
        NB+=(-- lsp-add "$NODE" "$name" -- lsp-set-addresses "$name" "$(pod_addresses "$node" "$octet")"
            -- lsp-set-port-security "$name" "$(pod_addresses "$node" "$octet")"
            -- lsp-set-options "$name" requested-chassis="$NODE" iface-id-ver="$(made_uuid "uid-$name")"
            -- set Logical_Switch_Port "$name" external_ids:pod=true external_ids:namespace="${name%%_*}")
    done
}

# service NAMESPACE/NAME PROTOCOL VIP BACKENDS: a service of the network whose names begin with
# $PREFIX. Each VIP is in the group of all switches and gateway routers.
PREFIX=
service() {
    local id=svc$((++SERVICES)) protocol=${2^^}
    NB+=(-- --id=@$id create Load_Balancer name="\"${PREFIX}Service_$1_${protocol}_cluster\"" protocol="$2"
        vips="\"$3\"=\"$4\"" options:reject=true options:event=false options:skip_snat=false
        options:hairpin_snat_ip='"169.254.169.5 fd69::5"'
        external_ids="{\"k8s.ovn.org/kind\"=\"Service\",\"k8s.ovn.org/owner\"=\"$1\"}")
    GROUP+=,@$id
}

nb_services() {
    SERVICES=0 GROUP=
    service ns1/web tcp 10.96.1.10:80 10.244.1.5:8080,10.244.2.5:8080
    service ns1/self tcp 10.96.1.11:80 10.244.1.5:8080
    service ns1/empty tcp 10.96.1.12:80 ''
    service ns2/db tcp 10.96.2.10:5432 10.244.2.6:5432
    service ns2/db-1 tcp 10.96.2.11:5432 10.244.3.5:5432
    service ns3/open tcp 10.96.3.10:80 10.244.3.6:8080
    service kube-system/dns udp 10.96.0.10:53 10.244.3.7:53
    service default/kubernetes tcp 10.96.0.1:443 172.18.0.4:6443
    service ns1/self6 tcp '[fd00:10:96::111]:80' '[fd00:10:244:1::5]:8080'
    service ns2/db6 tcp '[fd00:10:96::210]:5432' '[fd00:10:244:2::6]:5432'
    service ns1/external tcp 192.0.2.80:80 10.244.1.5:8080
    NB+=(-- --id=@nodeport create Load_Balancer name="Service_ns3/open_TCP_node_router+switch_$NODE" protocol=tcp
        vips="\"$(node_ip "$NUMBER"):31000\"=\"10.244.3.6:8080\"" options:reject=true
        options:hairpin_snat_ip='"169.254.169.5 fd69::5"'
        'external_ids={"k8s.ovn.org/kind"="Service","k8s.ovn.org/owner"="ns3/open"}'
        -- --id=@group create Load_Balancer_Group name=clusterLBGroup load_balancer="${GROUP#,}"
        -- add Logical_Switch "$NODE" load_balancer_group @group
        -- add Logical_Router "GR_$NODE" load_balancer_group @group
        -- add Logical_Switch "$NODE" load_balancer @nodeport
        -- add Logical_Router "GR_$NODE" load_balancer @nodeport)
}

# members NAMESPACE NAME-PREFIX: prints the pods of this node.
members() {
    local pod name node
    for pod in "${PODS[@]}"; do
        read -r name node _ <<<"$pod"
        [[ $node != "$NUMBER" || $name != "$1_$2"* ]] || printf '%s\n' "$name"
    done
}

# addresses FAMILY NAMESPACE NAME-PREFIX: prints the addresses of pods of all nodes.
addresses() {
    local pod name node octet
    for pod in "${PODS[@]}"; do
        read -r name node octet <<<"$pod"
        [[ $name == "$2_$3"* ]] || continue
        case $1 in
        4) printf '10.244.%d.%d ' "$node" "$octet" ;;
        6) printf '"fd00:10:244:%d::%d" ' "$node" "$octet" ;;
        esac
    done
}

# policy_acl GROUP DIRECTION PRIORITY ACTION OWNER-TYPE OWNER MATCH: MATCH is about the
# other end. OWNER is a namespace, or namespace:name.
policy_acl() {
    local group=$1 direction=$2 way=to-lport port=outport options='' id=acl$((++ACLS))
    if [[ $direction == Egress ]]; then
        way=from-lport port=inport options=apply-after-lb=true
    fi
    NB+=(-- --id=@$id create ACL direction=$way priority="$3" action="$4"
        match="\"$port == @$group${7:+ && $7}\"" name="\"NP:$6:$direction\"" ${options:+options:$options}
        external_ids="{direction=$direction,\"k8s.ovn.org/id\"=\"default-network-controller:$5:$6:$direction:$ACLS\",\"k8s.ovn.org/name\"=\"$6\",\"k8s.ovn.org/owner-controller\"=\"default-network-controller\",\"k8s.ovn.org/owner-type\"=\"$5\"}"
        -- add Port_Group "$group" acls @$id)
}

nb_policies() {
    local -a pods
    ACLS=0
    NB+=(-- create Address_Set name=a_ns1_web_v4 addresses="$(addresses 4 ns1 web)"
        -- create Address_Set name=a_ns1_web_v6 addresses="$(addresses 6 ns1 web)"
        -- create Address_Set name=a_ns2_v4 addresses="$(addresses 4 ns2 db)"
        -- create Address_Set name=a_ns3_v4 addresses="$(addresses 4 ns3 '')")
    mapfile -t pods < <(members ns2 db)
    NB+=(-- pg-add a_ns2_ingressDefaultDeny "${pods[@]}" -- pg-add a_ns2_db "${pods[@]}")
    policy_acl a_ns2_ingressDefaultDeny Ingress 1000 drop NetpolNamespace ns2 ''
    policy_acl a_ns2_ingressDefaultDeny Ingress 1001 allow NetpolNamespace ns2 '(arp || nd)'
    policy_acl a_ns2_db Ingress 1001 allow-related NetworkPolicy ns2:allow-web 'ip4.src == {$a_ns1_web_v4} && tcp && tcp.dst == 5432'
    policy_acl a_ns2_db Ingress 1001 allow-related NetworkPolicy ns2:allow-web 'ip6.src == {$a_ns1_web_v6} && tcp && tcp.dst == 5432'
    policy_acl a_ns2_db Ingress 1001 allow-related NetworkPolicy ns2:allow-metrics 'ip4.src == 10.244.0.0/16 && ip4.src != {10.244.1.7/32} && tcp && 9100 <= tcp.dst <= 9110'
    policy_acl a_ns2_db Ingress 1001 allow-related NetworkPolicy ns2:allow-client 'ip4.src == 10.244.1.6 && tcp && tcp.dst == {5432, 8080}'
    policy_acl a_ns2_db Ingress 30000 drop AdminNetworkPolicy deny-ns3 'ip4.src == {$a_ns3_v4}'
    mapfile -t pods < <(members ns1 client)
    NB+=(-- pg-add a_ns1_egressDefaultDeny "${pods[@]}" -- pg-add a_ns1_client "${pods[@]}")
    policy_acl a_ns1_egressDefaultDeny Egress 1000 drop NetpolNamespace ns1 ''
    policy_acl a_ns1_egressDefaultDeny Egress 1001 allow NetpolNamespace ns1 '(arp || nd)'
    policy_acl a_ns1_client Egress 1001 allow-related NetworkPolicy ns1:client-out 'ip4.dst == {$a_ns2_v4} && tcp && tcp.dst == 5432'
    policy_acl a_ns1_client Egress 1001 allow-related NetworkPolicy ns1:client-out 'udp && udp.dst == 53'
    # The node reaches its pods; and the egress firewall.
    NB+=(-- acl-add "$NODE" to-lport 1001 "ip4.src==10.244.$NUMBER.2" allow-related
        -- --apply-after-lb --name=EF:ns1 acl-add "$NODE" from-lport 9999
        '(ip4.dst == 203.0.113.0/24) && ip4.src == {$a_ns1_web_v4}' drop)
}

# eip-0 on worker1 leaves the cluster through worker2.
nb_egress() {
    NB+=(-- lr-policy-add ovn_cluster_router 102 'ip4.src == 10.244.0.0/16 && ip4.dst == 10.244.0.0/16' allow
        -- lr-policy-add ovn_cluster_router 102 'ip4.src == 10.244.0.0/16 && ip4.dst == 100.64.0.0/16' allow)
    case $NUMBER in
    1) NB+=(-- lr-policy-add ovn_cluster_router 100 'ip4.src == 10.244.1.7' reroute 100.88.0.3) ;;
    2) NB+=(-- lr-nat-add GR_worker2 snat 172.18.0.100 10.244.1.7
        -- --policy=src-ip lr-route-add ovn_cluster_router 10.244.1.7/32 100.64.0.3) ;;
    esac
}
