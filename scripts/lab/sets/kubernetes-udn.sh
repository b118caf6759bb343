# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by set.sh and lib.sh
# shellcheck disable=SC2154 # NUMBER, NODE, NB and others are set by kubernetes-ic.sh
# The cluster of the set kubernetes-host with a primary user-defined network of layer 3: blue/net, number 1.
# Each node has a management port of it, in a VRF of the kernel, with the routes, rules and chains of ovnkube.
# The pods of the namespace blue are in it; in the default network, where each has an address too, ovnkube isolates
# them. Of NAT this OVN has no column match: the source address of a pod is translated whenever it leaves the
# router for the node's own subnet, which pods of that subnet never do.

# shellcheck source=scripts/lab/sets/kubernetes-host.sh
. "$HERE/sets/kubernetes-host.sh"

SET_SUMMARY='OVN-Kubernetes with a primary user-defined network: its management ports are in VRFs, as root'
SET_ZONES+=(64004)

MASQUERADE_LENGTH=24
MASQUERADE=169.254.169
NETWORK=blue_net
NETWORK_MANAGEMENT=ovn-k8s-mp1
NETWORK_VRF=mp1-udn-vrf
NETWORK_GATEWAY=$MASQUERADE.11 # the masquerade address of the network's gateway routers,
NETWORK_HOST=$MASQUERADE.12    # and of its management ports
NETWORK_CT_MARK=0x4
NETWORK_MARK=0x1001
DNS_IP=10.96.0.10
API_IP=10.96.0.1

# pod, number of its node, last octet in the network, last octet in the default network
NETWORK_PODS=(
    'b1 1 5 18'
    'b2 2 5 18'
    'b3 3 5 18'
    'b4 1 6 19'
)

network_mac() { printf '0a:58:0a:64:%02x:%02x' "$1" "$2"; }

renew host host_devices
renew host node_switch
renew host host_network
renew host host_rules
renew host zone_logical
renew host nb_egress

# --- the node ----------------------------------------------------------------

host_devices() {
    host_host_devices
    printf '%s\n' $NETWORK_MANAGEMENT
}

node_switch() {
    local pod name node octet second
    host_node_switch
    add_namespace_port br-int $NETWORK_MANAGEMENT $OWN mtu_request=1400 mac="\"$(network_mac "$NUMBER" 2)\"" \
        external_ids:iface-id="k8s-${NETWORK}_$NODE" external_ids:k8s.ovn.org/network=$NETWORK
    for pod in "${NETWORK_PODS[@]}"; do
        read -r name node octet second <<<"$pod"
        [[ $node == "$NUMBER" ]] || continue
        add_pod_port "blue/$name:eth0" "blue_$name" "$(pod_mac "$node" "$second")" "10.244.$node.$second/24"
        add_pod_port "blue/$name" "blue.net_blue_$name" "$(network_mac "$node" "$octet")" "10.100.$node.$octet/24" \
            external_ids:k8s.ovn.org/network=$NETWORK external_ids:k8s.ovn.org/nad=blue/net
    done
}

# add_pod_port LABEL LOGICAL-PORT MAC ADDRESS WORDS...
add_pod_port() {
    local label=$1 logical=$2 mac=$3 address=$4 id
    shift 4
    id=$(made_uuid "$logical")
    id=${id//-/}
    add_port br-int "${id:0:15}" edge "$label" mtu_request=1400 external_ids:iface-id="$logical" \
        external_ids:iface-id-ver="$(made_uuid "uid-${logical##*blue_}")" external_ids:sandbox="$id" \
        external_ids:attached_mac="\"$mac\"" external_ids:ip_addresses="\"$address\"" "$@"
}

node_finish() {
    local uplink patch network host
    uplink=$(ofport eth0)
    patch=$(ofport "patch-breth0_$NODE-to-br-int")
    network=$(ofport "patch-breth0_${NETWORK}_$NODE-to-br-int")
    host=$(node_ip "$NUMBER")
    {
        breth0_flows "$uplink" "$patch" "$host" "$network"
        service_flows "$uplink" "$patch"
        network_flows "$uplink" "$patch" "$host" "$network"
    } | ovs-ofctl -O OpenFlow13 --bundle replace-flows breth0 -
}

host_network() {
    local n=$NUMBER table
    host_host_network
    table=$((1000 + $(in_namespace $OWN ip -o link show $NETWORK_MANAGEMENT | cut -d : -f 1)))
    in_namespace $OWN sysctl -qw net.ipv4.conf.$NETWORK_MANAGEMENT.rp_filter=2
    in_namespace $OWN ip -batch - <<EOT
link set $NETWORK_MANAGEMENT address $(network_mac "$n" 2) mtu 1400
link add $NETWORK_VRF type vrf table $table
link set $NETWORK_MANAGEMENT master $NETWORK_VRF
link set $NETWORK_VRF up
link set $NETWORK_MANAGEMENT up
address add 10.100.$n.2/24 dev $NETWORK_MANAGEMENT
route add 10.96.0.0/16 via $MASQUERADE.4 dev breth0 mtu 1400 table $table
route add $NETWORK_HOST dev $NETWORK_MANAGEMENT mtu 1400 table $table
route add $MASQUERADE.3 via 10.100.$n.1 dev $NETWORK_MANAGEMENT table $table
route add 10.100.0.0/16 via 10.100.$n.1 dev $NETWORK_MANAGEMENT table $table
route add unreachable default metric 4278198272 table $table
rule add fwmark $NETWORK_MARK table $table priority 2000
rule add to $NETWORK_HOST table $table priority 2000
EOT
    # On worker3 the network is as one that only its own VRF advertises (VRF-Lite): without the node's gateway.
    [[ $n == 3 ]] || in_namespace $OWN ip route add default via 172.18.0.1 dev breth0 mtu 1400 table "$table"
}

host_rules() {
    host_host_rules
    cat <<EOT
table inet ovn-kubernetes {
    map udn-mark-nodeports {
        type inet_proto . inet_service : verdict
        comment "UDN services NodePorts mark"
    }
    map udn-mark-external-ips-v4 {
        type ipv4_addr . inet_proto . inet_service : verdict
        comment "UDN services External IPs mark (IPv4)"
    }
    set udn-open-ports-v4 {
        type ipv4_addr . inet_proto . inet_service
        comment "default network open ports of pods in user defined networks (IPv4)"
    }
    set udn-open-ports-icmp-v4 {
        type ipv4_addr
        comment "default network IPs of pods in user defined networks that allow ICMP (IPv4)"
    }
    set udn-pod-default-ips-v4 {
        type ipv4_addr
        comment "default network IPs of pods in user defined networks (IPv4)"
        elements = { $(isolated_addresses ', ') }
    }
    set advertised-udn-subnets-v4 {
        type ipv4_addr
        flags interval
        comment "advertised UDNs V4 subnets"
    }
    chain udn-mark-$NETWORK_MARK {
        comment "$NETWORK: UDN packet marking"
        meta mark set $NETWORK_MARK
    }
    chain udn-service-mark {
        comment "UDN services packet mark"
        fib daddr type local meta l4proto . th dport vmap @udn-mark-nodeports
        ip daddr . meta l4proto . th dport vmap @udn-mark-external-ips-v4
    }
    chain udn-service-prerouting {
        comment "UDN services packet mark - Prerouting"
        type filter hook prerouting priority mangle; policy accept;
        iifname != "$MANAGEMENT" jump udn-service-mark
    }
    chain udn-service-output {
        comment "UDN services packet mark - Output"
        type filter hook output priority mangle; policy accept;
        jump udn-service-mark
    }
    chain udn-isolation {
        comment "Host isolation for user defined networks"
        type filter hook output priority filter; policy accept;
        ip daddr . meta l4proto . th dport @udn-open-ports-v4 accept
        ip daddr @udn-open-ports-icmp-v4 meta l4proto icmp accept
        ip daddr @udn-pod-default-ips-v4 drop
    }
    chain udn-bgp-drop {
        comment "Drop traffic generated locally towards advertised UDN subnets"
        type filter hook output priority filter; policy accept;
        ip daddr @advertised-udn-subnets-v4 counter drop
    }
}
add element inet ovn-kubernetes udn-mark-nodeports { tcp . 31002 : jump udn-mark-$NETWORK_MARK }
EOT
}

# isolated_addresses SEPARATOR: prints the addresses that pods of this node have in the default network.
isolated_addresses() {
    local pod node second text=
    for pod in "${NETWORK_PODS[@]}"; do
        read -r _ node _ second <<<"$pod"
        [[ $node != "$NUMBER" ]] || text+=${text:+$1}10.244.$node.$second
    done
    printf '%s' "$text"
}

# --- OVN ---------------------------------------------------------------------

zone_logical() {
    local other
    host_zone_logical
    for other in "${SET_NODES[@]}"; do
        [[ $other == "$NODE" ]] || bind_remote "${NETWORK}_tstor-$other" "${CHASSIS[$other]}"
    done
}

nb_egress() {
    host_nb_egress
    nb_masquerade
    nb_isolation
    nb_network
    nb_network_gateway
    nb_network_pods
    nb_network_services
}

# nb_masquerade: the way of the default network's gateway router back to the node.
nb_masquerade() {
    NB+=(-- lr-route-add "GR_$NODE" $MASQUERADE.0/24 $MASQUERADE.4 "rtoe-GR_$NODE")
}

# nb_isolation: the pods of the network in the default network, where only the node reaches them.
nb_isolation() {
    local pod name node second group=a11646882830087486245
    local -a ports=()
    for pod in "${NETWORK_PODS[@]}"; do
        read -r name node _ second <<<"$pod"
        [[ $node == "$NUMBER" ]] || continue
        ports+=("blue_$name")
        nb_pod "$NODE" "blue_$name" "$name" "$(pod_mac "$node" "$second") 10.244.$node.$second"
    done
    NB+=(-- pg-add $group "${ports[@]}" -- set Port_Group $group external_ids='{"k8s.ovn.org/name"="SecondaryPods","k8s.ovn.org/owner-type"="UDNIsolation"}')
    isolation_acl DenyPrimaryUDN Egress 1000 drop ''
    isolation_acl AllowHostARPPrimaryUDN Egress 1001 allow "(( arp && arp.tpa == 10.244.$NUMBER.2 ))"
    isolation_acl DenyPrimaryUDN Ingress 1000 drop ''
    isolation_acl AllowHostARPPrimaryUDN Ingress 1001 allow "(( arp && arp.spa == 10.244.$NUMBER.2 ))"
    isolation_acl AllowHostPrimaryUDN Ingress 1001 allow-related "(ip4.src==10.244.$NUMBER.2)"
}

# isolation_acl NAME DIRECTION PRIORITY ACTION MATCH: uses the variable group.
isolation_acl() {
    local id=isolation$((++ACLS)) way=to-lport port=outport
    [[ $2 == Ingress ]] || way=from-lport port=inport
    NB+=(-- --id=@$id create ACL direction=$way priority="$3" action="$4" match="\"$port == @$group${5:+ && $5}\""
        external_ids="{direction=$2,\"k8s.ovn.org/id\"=\"default-network-controller:UDNIsolation:$1:$2\",\"k8s.ovn.org/name\"=\"$1\",\"k8s.ovn.org/owner-controller\"=\"default-network-controller\",\"k8s.ovn.org/owner-type\"=\"UDNIsolation\"}"
        -- add Port_Group "$group" acls @$id)
}

# nb_pod SWITCH LOGICAL-PORT POD ADDRESSES WORDS...: WORDS are further external_ids.
nb_pod() {
    NB+=(-- lsp-add "$1" "$2" -- lsp-set-addresses "$2" "$4" -- lsp-set-port-security "$2" "$4"
        -- lsp-set-options "$2" requested-chassis="$NODE" iface-id-ver="$(made_uuid "uid-$3")"
        -- set Logical_Switch_Port "$2" external_ids:pod=true external_ids:namespace=blue "${@:5}")
}

# The external_ids of everything of the network.
NETWORK_IDS=(external_ids:k8s.ovn.org/network=$NETWORK external_ids:k8s.ovn.org/topology=layer3)

nb_network() {
    local n=$NUMBER router=${NETWORK}_ovn_cluster_router switch=${NETWORK}_$NODE transit=${NETWORK}_transit_switch
    local other o port
    NB+=(-- lr-add "$router" -- set Logical_Router "$router" options:always_learn_from_arp_request=false
        external_ids:k8s-cluster-router=yes external_ids:k8s.ovn.org/role=primary "${NETWORK_IDS[@]}"
        -- ls-add "${NETWORK}_join" -- set Logical_Switch "${NETWORK}_join" external_ids:k8s.ovn.org/role=primary "${NETWORK_IDS[@]}"
        -- ls-add "$switch" -- set Logical_Switch "$switch" other_config:subnet="10.100.$n.0/24"
        external_ids:k8s.ovn.org/role=primary "${NETWORK_IDS[@]}"
        -- ls-add "$transit" -- set Logical_Switch "$transit" other_config:interconn-ts="$transit"
        other_config:requested-tnl-key=16711684 external_ids:k8s.ovn.org/role=primary "${NETWORK_IDS[@]}")
    join_router "$router" "rtos-$switch" "$(network_mac "$n" 1)" "$switch" "10.100.$n.1/24"
    join_router "$router" "rtoj-$router" 0a:58:64:41:00:01 "${NETWORK}_join" 100.65.0.1/16
    join_router "$router" "${NETWORK}_rtots-$NODE" "0a:58:64:58:00:0$((n + 1))" "$transit" "100.88.0.$((n + 1))/16"
    NB+=(-- lrp-set-gateway-chassis "rtos-$switch" "$TOPO_SYSTEM_ID" 1
        -- set Logical_Router_Port "${NETWORK}_rtots-$NODE" options:requested-tnl-key="$((n + 1))"
        -- set Logical_Switch_Port "${NETWORK}_tstor-$NODE" options:requested-tnl-key="$((n + 1))"
        -- lsp-add "$switch" "k8s-$switch" -- lsp-set-addresses "k8s-$switch" "$(network_mac "$n" 2) 10.100.$n.2"
        -- set Logical_Switch_Port "k8s-$switch" "${NETWORK_IDS[@]}"
        -- lr-nat-add "$router" snat $NETWORK_HOST "10.100.$n.0/24")
    for other in "${SET_NODES[@]}"; do
        [[ $other != "$NODE" ]] || continue
        o=$(number "$other") port=${NETWORK}_tstor-$other
        NB+=(-- lsp-add "$transit" "$port" -- lsp-set-type "$port" remote
            -- lsp-set-addresses "$port" "0a:58:64:58:00:0$((o + 1)) 100.88.0.$((o + 1))/16"
            -- set Logical_Switch_Port "$port" external_ids:node="$other" options:requested-tnl-key="$((o + 1))"
            options:requested-chassis="$other" "${NETWORK_IDS[@]}"
            -- lr-route-add "$router" "10.100.$o.0/24" "100.88.0.$((o + 1))"
            -- lr-route-add "$router" "100.65.0.$((o + 1))/32" "100.88.0.$((o + 1))")
    done
    NB+=(-- --policy=src-ip lr-route-add "$router" "10.100.$n.0/24" "100.65.0.$((n + 1))"
        -- lr-route-add "$router" "100.65.0.$((n + 1))" "100.65.0.$((n + 1))"
        -- lr-route-add "$router" $DNS_IP "10.100.$n.2" -- lr-route-add "$router" $API_IP "10.100.$n.2"
        -- lr-policy-add "$router" 1004 "inport == \"rtos-$switch\" && ip4.dst == $(node_ip "$n") /* $switch */" reroute "10.100.$n.2"
        -- lr-policy-add "$router" 102 'ip4.src == 10.100.0.0/16 && ip4.dst == 10.100.0.0/16' allow
        -- lr-policy-add "$router" 102 'ip4.src == 10.100.0.0/16 && ip4.dst == 100.65.0.0/16' allow)
}

nb_network_gateway() {
    local n=$NUMBER gr=GR_${NETWORK}_$NODE outside=ext_${NETWORK}_$NODE port=breth0_${NETWORK}_$NODE
    NB+=(-- lr-add "$gr" -- set Logical_Router "$gr" options:chassis="$TOPO_SYSTEM_ID"
        options:lb_force_snat_ip=router_ip options:always_learn_from_arp_request=false options:dynamic_neigh_routers=false
        external_ids:physical_ip="$(node_ip "$n")" external_ids:physical_ips="\"$(node_ip "$n"),$NETWORK_GATEWAY\""
        external_ids:k8s.ovn.org/role=primary "${NETWORK_IDS[@]}"
        -- ls-add "$outside" -- set Logical_Switch "$outside" external_ids:k8s.ovn.org/role=primary "${NETWORK_IDS[@]}")
    join_router "$gr" "rtoj-$gr" "0a:58:64:41:00:0$((n + 1))" "${NETWORK}_join" "100.65.0.$((n + 1))/16"
    NB+=(-- lrp-add "$gr" "rtoe-$gr" "$UPLINK_MAC" "$(node_ip "$n")/24" "$NETWORK_GATEWAY/24"
        -- set Logical_Router_Port "rtoe-$gr" options:gateway_mtu=1400
        -- lsp-add "$outside" "etor-$gr" -- lsp-set-type "etor-$gr" router -- lsp-set-addresses "etor-$gr" "$UPLINK_MAC"
        -- lsp-set-options "etor-$gr" router-port="rtoe-$gr" nat-addresses=router exclude-lb-vips-from-garp=true
        -- lsp-add "$outside" "$port" -- lsp-set-type "$port" localnet -- lsp-set-addresses "$port" unknown
        -- lsp-set-options "$port" network_name=physnet
        -- lr-route-add "$gr" 0.0.0.0/0 172.18.0.1 "rtoe-$gr" -- lr-route-add "$gr" 10.100.0.0/16 100.65.0.1
        -- lr-route-add "$gr" $MASQUERADE.0/24 $MASQUERADE.4 "rtoe-$gr"
        -- static-mac-binding-add "rtoe-$gr" $MASQUERADE.4 0a:58:a9:fe:a9:04
        -- lr-nat-add "$gr" snat $NETWORK_GATEWAY 10.100.0.0/16)
}

nb_network_pods() {
    local pod name node octet
    for pod in "${NETWORK_PODS[@]}"; do
        read -r name node octet _ <<<"$pod"
        [[ $node != "$NUMBER" ]] || nb_pod "${NETWORK}_$NODE" "blue.net_blue_$name" "$name" \
            "$(network_mac "$node" "$octet") 10.100.$node.$octet" external_ids:k8s.ovn.org/nad=blue/net "${NETWORK_IDS[@]}"
    done
}

nb_network_services() {
    local PREFIX=${NETWORK}_ SERVICES=0 GROUP=
    service blue/web tcp 10.96.7.10:80 10.100.2.5:8080
    service blue/empty tcp 10.96.7.11:80 ''
    NB+=(-- --id=@nodeport create Load_Balancer name="${NETWORK}_Service_blue/web_TCP_node_router+switch_$NODE" protocol=tcp
        vips="\"$(node_ip "$NUMBER"):31002\"=\"10.100.2.5:8080\"" options:reject=true
        options:hairpin_snat_ip='"169.254.169.5 fd69::5"'
        'external_ids={"k8s.ovn.org/kind"="Service","k8s.ovn.org/owner"="blue/web"}' "${NETWORK_IDS[@]}"
        -- --id=@group create Load_Balancer_Group name=${NETWORK}_clusterLBGroup load_balancer="${GROUP#,}"
        -- add Logical_Switch "${NETWORK}_$NODE" load_balancer_group @group
        -- add Logical_Router "GR_${NETWORK}_$NODE" load_balancer_group @group
        -- add Logical_Switch "${NETWORK}_$NODE" load_balancer @nodeport
        -- add Logical_Router "GR_${NETWORK}_$NODE" load_balancer @nodeport)
}
