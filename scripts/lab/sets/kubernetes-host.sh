# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by set.sh and lib.sh
# The cluster of the set kubernetes-ic, whose nodes have their own network namespace: the kernel
# is behind the management port and behind the bridge to the outside, with the addresses, routes
# and rules of ovnkube. worker3 also has a second interface, by which the egress IP of ns2/db-1
# leaves, and by which node ports and addresses of services are reached through the kernel. Pods of
# the services of ns4 are in the network of their nodes.

# shellcheck source=scripts/lab/sets/kubernetes-ic.sh
. "$HERE/sets/kubernetes-ic.sh"
# shellcheck source=scripts/lab/namespaces.sh
. "$HERE/namespaces.sh"

SET_SUMMARY='OVN-Kubernetes whose nodes have a kernel: node ports, management ports, egress IP on a second interface, as root'
SET_NETWORKS=(underlay second)
SET_NAMESPACES=yes

MANAGEMENT=ovn-k8s-mp0
SECOND_IP=10.10.0
# The network of ovnkube's masquerade addresses on the node.
MASQUERADE_LENGTH=29
KUBELET=10250
INSIDE_MARK=0x1745ec # of what the node sends to services with internalTrafficPolicy Local

# namespace/name, node port, cluster IP and port, externalTrafficPolicy, address outside or -, endpoints.
# Endpoints of the nodes themselves begin with 172.18. All have sessionAffinity ClientIP with the longest
# timeout: then OVN chooses an endpoint without a recirculation, of which Open vSwitch in user space
# allows a packet six.
SERVED=(
    'ns4/hostweb 31080 10.96.4.10:80 Local 192.0.2.90 172.18.0.2:8080,172.18.0.4:8080'
    'ns4/hostapi 31081 10.96.4.11:80 Cluster - 172.18.0.2:8081'
    'ns3/local 31082 10.96.3.11:80 Local 192.0.2.91 10.244.3.6:8080'
    'ns4/guarded 31083 10.96.4.12:80 Local - 172.18.0.2:8083'
    'ns2/public 31084 10.96.2.12:5432 Cluster 192.0.2.92 10.244.2.6:5432'
    'ns4/nobody 31085 10.96.4.13:80 Cluster - -'
    'ns3/shown 31086 10.96.3.12:80 Cluster 192.0.2.93 10.244.1.5:8080'
    'ns3/near 31087 10.96.3.13:80 Cluster - 10.244.3.6:8080'
)

# Services with internalTrafficPolicy Local: namespace/name, cluster IP and port, endpoints.
INSIDE=(
    'ns3/inner 10.96.3.14:80 10.244.3.6:8080'
    'ns4/inner 10.96.4.14:80 172.18.0.2:8080'
)

# renew PREFIX FUNCTION: keeps what a function of the set below does under the name PREFIX_FUNCTION.
renew() { eval "$1_$(declare -f "$2")"; }
renew cluster set_fabric
renew cluster node_switch
renew cluster node_finish
renew cluster nb_gateway
renew cluster nb_services
renew cluster nb_egress

set_fabric() {
    cluster_set_fabric
    fabric_outside second ext1
}

# host_devices: prints the devices of the node's kernel.
host_devices() {
    printf '%s\n' $MANAGEMENT breth0
    [[ $NUMBER != 3 ]] || printf 'eth1\n'
}

node_switch() {
    local -a devices
    mapfile -t devices < <(host_devices)
    start_namespace $OWN --listen="$(listening)" "${devices[@]}"
    cluster_node_switch
    into_namespace $MANAGEMENT
    into_namespace breth0
    printf -- '- process - process %s %s\n' "$NODE:process" $OWN >>"$LAB/ports"
    [[ $NUMBER != 3 ]] || second_interface
    host_network
    host_rules | in_namespace $OWN nft -f -
    service_rules | in_namespace $OWN iptables-restore --noflush
}

# listening: prints the TCP ports of the kubelet and of the pods in the node's own network.
listening() {
    local service endpoints ports=$KUBELET
    for service in "${SERVED[@]}"; do
        read -r _ _ _ _ _ endpoints <<<"$service"
        [[ ,$endpoints, != *,"$(node_ip "$NUMBER")":* ]] || ports+=,${endpoints##*:}
    done
    printf '%s' "$ports"
}

# has_own_endpoint ENDPOINTS: reports whether one of them is the node itself.
has_own_endpoint() { [[ ,$1 == *,"$(node_ip "$NUMBER")":* ]]; }

# local_endpoints ENDPOINTS: prints those on the node, which may be itself.
local_endpoints() {
    local endpoint list=''
    for endpoint in ${1//,/ }; do
        case $endpoint in
        "$(node_ip "$NUMBER")":* | "10.244.$NUMBER".*) list+=,$endpoint ;;
        esac
    done
    printf '%s' "${list#,}"
}

node_finish() {
    cluster_node_finish
    service_flows "$(ofport eth0)" "$(ofport "patch-breth0_$NODE-to-br-int")" |
        ovs-ofctl -O OpenFlow13 --bundle add-flows breth0 -
}

# service_flows UPLINK PATCH: prints the flows of the services for breth0.
service_flows() {
    local service name port policy outside endpoints host
    host=$(node_ip "$NUMBER")
    printf 'cookie=0xdeff105,table=0,priority=115,ip,in_port=%s,nw_dst=10.96.0.0/16,actions=drop\n' "$2"
    for service in "${SERVED[@]}"; do
        read -r name port vip policy outside endpoints <<<"$service"
        if [[ $policy == Local ]] && has_own_endpoint "$endpoints"; then
            host_port_flows "$1" "$host" "${endpoints##*:}" "$name" tcp "$port"
            [[ $outside == - ]] || host_port_flows "$1" "$host" "${endpoints##*:}" "$name" tcp "${vip#*:}" "$outside"
        else
            port_flows "$1" "$2" "$name" tcp "$port"
            [[ $outside == - ]] || port_flows "$1" "$2" "$name" tcp "${vip#*:}" "$outside"
        fi
    done
}

# into_namespace INTERFACE: joins an interface of the node with the kernel's device.
into_namespace() {
    ovs-vsctl set Interface "$1" options:stream="unix:$SET/wires/$NODE-$1.sock" \
        options:rxq_pcap="$LAB/pcap/$1.out.pcap"
    sed -i "s/^\([^ ]* $1 [^ ]*\) host \(.*\)/\1 namespace \2 $OWN/" "$LAB/ports"
}

# second_interface: what leaves by it is recorded where the cable ends.
second_interface() {
    fabric ovs-vsctl add-port second "$NODE-eth1" -- set Interface "$NODE-eth1" \
        options:stream="unix:$SET/wires/$NODE-eth1.sock" options:rxq_pcap="$LAB/pcap/eth1.pcap"
    printf -- '- eth1 - uplink %s\n' "$NODE:eth1" >>"$LAB/ports"
}

host_network() {
    local n=$NUMBER timeout
    for timeout in tcp_timeout_syn_sent tcp_timeout_syn_recv tcp_timeout_unacknowledged tcp_timeout_max_retrans udp_timeout udp_timeout_stream icmp_timeout; do
        in_namespace $OWN sysctl -qw "net.netfilter.nf_conntrack_$timeout=3600"
    done
    in_namespace $OWN sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.$MANAGEMENT.rp_filter=2 \
        net.ipv4.tcp_synack_retries=0 net.ipv4.icmp_ratemask=0 net.ipv6.conf.all.disable_ipv6=1
    in_namespace $OWN ip -batch - <<EOT
link set $MANAGEMENT address $(pod_mac "$n" 2) mtu 1400 up
link set breth0 address $UPLINK_MAC mtu 1500 up
address add 10.244.$n.2/24 brd + dev $MANAGEMENT
address add $(node_ip "$n")/24 brd + dev breth0
address add 169.254.169.2/$MASQUERADE_LENGTH brd + dev breth0
route add default via 172.18.0.1 dev breth0
route add 10.244.0.0/16 via 10.244.$n.1 dev $MANAGEMENT
route add 10.96.0.0/16 via 169.254.169.4 dev breth0 src 169.254.169.2 mtu 1400
route add 169.254.169.3 via 10.244.$n.1 dev $MANAGEMENT
route add 169.254.169.1 dev breth0 src $(node_ip "$n") mtu 1400
route add 10.96.0.0/16 via 10.244.$n.1 dev $MANAGEMENT table 7
rule add fwmark $INSIDE_MARK lookup 7 priority 30
neigh add 169.254.169.1 lladdr 0a:58:a9:fe:a9:01 dev breth0 nud permanent
neigh add 169.254.169.4 lladdr 0a:58:a9:fe:a9:04 dev breth0 nud permanent
EOT
    [[ $n == 3 ]] || return 0
    in_namespace $OWN ip -batch - <<EOT
link set eth1 address 02:42:0a:0a:00:03 mtu 1500 up
address add $SECOND_IP.3/24 brd + dev eth1
address add $SECOND_IP.100/32 dev eth1
route add default via $SECOND_IP.1 dev eth1 table 1004
route add $SECOND_IP.0/24 dev eth1 table 1004
rule add from 10.244.3.5 table 1004 priority 6000
EOT
}

# unchanged_ports: prints the node ports whose clients pods of this node see, as the elements of a set.
unchanged_ports() {
    local service port policy endpoints list=''
    for service in "${SERVED[@]}"; do
        read -r _ port _ policy _ endpoints <<<"$service"
        [[ $policy != Local ]] || has_own_endpoint "$endpoints" || list+=,tcp' . '$port
    done
    printf '        elements = { %s }\n' "${list#,}"
}

# service_rules: prints the rules of ovnkube for iptables.
service_rules() {
    local service port vip policy outside endpoints
    cat <<EOT
*nat
:OVN-KUBE-ETP - [0:0]
:OVN-KUBE-EXTERNALIP - [0:0]
:OVN-KUBE-ITP - [0:0]
:OVN-KUBE-NODEPORT - [0:0]
-A PREROUTING -j OVN-KUBE-ETP
-A PREROUTING -j OVN-KUBE-EXTERNALIP
-A PREROUTING -j OVN-KUBE-NODEPORT
-A OUTPUT -j OVN-KUBE-EXTERNALIP
-A OUTPUT -j OVN-KUBE-NODEPORT
-A OUTPUT -j OVN-KUBE-ITP
-A OVN-KUBE-NODEPORT -p tcp -m addrtype --dst-type LOCAL -m tcp --dport 31000 -j DNAT --to-destination 10.96.3.10:80
EOT
    for service in "${SERVED[@]}"; do
        read -r _ port vip policy outside endpoints <<<"$service"
        printf '%s\n' "-A OVN-KUBE-NODEPORT -p tcp -m addrtype --dst-type LOCAL -m tcp --dport $port -j DNAT --to-destination $vip"
        [[ $outside != - ]] || continue
        printf '%s\n' "-A OVN-KUBE-EXTERNALIP -d $outside/32 -p tcp -m tcp --dport ${vip#*:} -j DNAT --to-destination $vip"
        [[ $policy != Local ]] || has_own_endpoint "$endpoints" ||
            printf '%s\n' "-A OVN-KUBE-ETP -d $outside/32 -p tcp -m tcp --dport ${vip#*:} -j DNAT --to-destination 169.254.169.3:$port"
    done
    inside_rules redirect
    [[ $NUMBER != 3 ]] || cat <<EOT
:OVN-KUBE-EGRESS-IP-MULTI-NIC - [0:0]
-A POSTROUTING -j OVN-KUBE-EGRESS-IP-MULTI-NIC
-A OVN-KUBE-EGRESS-IP-MULTI-NIC -s 10.244.3.5/32 -o eth1 -j SNAT --to-source $SECOND_IP.100
EOT
    # The administrator of the node closed the port of the last table.
    cat <<EOT
COMMIT
*mangle
:OVN-KUBE-ITP - [0:0]
-A OUTPUT -j OVN-KUBE-ITP
$(inside_rules mark)
COMMIT
*filter
-A INPUT -p tcp -m tcp --dport 8083 -m comment --comment "only from this node" -j DROP
COMMIT
EOT
}

# inside_rules redirect|mark: prints the rules of services with internalTrafficPolicy Local, in the table
# nat where the node itself has an endpoint, and in the table mangle elsewhere.
inside_rules() {
    local service vip endpoints
    for service in "${INSIDE[@]}"; do
        read -r _ vip endpoints <<<"$service"
        if has_own_endpoint "$endpoints"; then
            [[ $1 == mark ]] || printf '%s\n' "-A OVN-KUBE-ITP -d ${vip%:*}/32 -p tcp -m tcp --dport ${vip#*:} -j REDIRECT --to-ports ${endpoints##*:}"
        else
            [[ $1 == redirect ]] || printf '%s\n' "-A OVN-KUBE-ITP -d ${vip%:*}/32 -p tcp -m tcp --dport ${vip#*:} -j MARK --set-xmark $INSIDE_MARK/0xffffffff"
        fi
    done
}

# host_rules: prints the rules of ovnkube for nft.
host_rules() {
    cat <<EOT
table inet ovn-kubernetes {
    set mgmtport-no-snat-nodeports {
        type inet_proto . inet_service
        comment "NodePorts not subject to management port SNAT"
$(unchanged_ports)
    }
    chain mgmtport-snat {
        comment "OVN SNAT to Management Port"
        type nat hook postrouting priority srcnat; policy accept;
        oifname != "$MANAGEMENT" return
        ip saddr 10.244.$NUMBER.2 return
        meta l4proto . th dport @mgmtport-no-snat-nodeports counter return
        counter snat ip to 10.244.$NUMBER.2
    }
}
EOT
}

# nb_gateway: what the gateway router sends to the node itself goes to an address behind its own bridge.
nb_gateway() {
    cluster_nb_gateway
    NB+=(-- lr-route-add "GR_$NODE" 169.254.169.0/29 169.254.169.4 rtoe-"GR_$NODE"
        -- create Static_MAC_Binding logical_port=rtoe-"GR_$NODE" ip=169.254.169.4 'mac="0a:58:a9:fe:a9:04"'
        override_dynamic_mac=true)
}

nb_services() {
    local service name port vip policy outside endpoints router
    cluster_nb_services
    for service in "${SERVED[@]}"; do
        read -r name port vip policy outside endpoints <<<"$service"
        endpoints=${endpoints#-}
        router=$endpoints
        [[ $policy != Local ]] || router=$(local_endpoints "$endpoints")
        node_ports "$name" "$port" "$policy" "$endpoints" "$(masked "$router")"
        cluster_ports "$name" "$vip" "$policy" "$outside" "$endpoints"
        [[ $policy != Local || $outside == - ]] ||
            outside_ports "$name" "$outside:${vip#*:}" "$endpoints" "$(masked "$router")"
    done
    for service in "${INSIDE[@]}"; do
        read -r name vip endpoints <<<"$service"
        node_balancer "$name" node_router "\"$vip\"=\"$(masked "$endpoints")\""
        node_balancer "$name" node_switch "\"$vip\"=\"$(local_endpoints "$endpoints")\""
    done
}

# masked ENDPOINTS: prints endpoints as the gateway router of the node reaches them.
masked() {
    local list=,$1
    printf '%s' "${list//,$(node_ip "$NUMBER"):/,169.254.169.2:}" | sed 's/^,//'
}

# node_ports NAMESPACE/NAME PORT POLICY ENDPOINTS ENDPOINTS-OF-ROUTER: the load balancers of a node port.
node_ports() {
    local address switch='' router=''
    for address in $(node_ip "$NUMBER") $([[ $NUMBER != 3 ]] || printf '%s' "$SECOND_IP.3"); do
        switch+=,\"$address:$2\"=\"$4\"
        router+=,\"$address:$2\"=\"$5\"
    done
    [[ $3 != Local ]] || switch+=,\"169.254.169.3:$2\"=\"$(local_endpoints "$4")\"
    node_balancer "$1" "$(router_scope "$3" "$5")" "${router#,}"
    node_balancer "$1" node_switch "${switch#,}"
}

# router_scope POLICY ENDPOINTS: prints what a load balancer of a gateway router is called.
router_scope() {
    if [[ $1 == Local && -n $2 ]]; then
        printf node_local_router
    else
        printf node_router
    fi
}

# cluster_ports NAMESPACE/NAME VIP POLICY ADDRESS ENDPOINTS: the load balancers of the address in the cluster.
# Each node has its own if nodes are among the endpoints.
cluster_ports() {
    local vips=\"$2\"=\"$5\" router
    router=\"$2\"=\"$(masked "$5")\"
    [[ $3 == Local || $4 == - ]] || {
        vips+=,\"$4:${2#*:}\"=\"$5\"
        router+=,\"$4:${2#*:}\"=\"$(masked "$5")\"
    }
    if [[ $5 == *172.18.* ]]; then
        node_balancer "$1" node_router "$router"
        node_balancer "$1" node_switch "$vips"
    else
        node_balancer "$1" cluster "$vips"
    fi
}

# outside_ports NAMESPACE/NAME ADDRESS ENDPOINTS ENDPOINTS-OF-ROUTER: the load balancers of an address
# outside, of a service with externalTrafficPolicy Local.
outside_ports() {
    node_balancer "$1" "$(router_scope Local "$4")" "\"$2\"=\"$4\""
    node_balancer "$1" node_switch "\"$2\"=\"$3\""
}

# node_balancer NAMESPACE/NAME SCOPE VIPS: a load balancer of this node's routers and switches.
node_balancer() {
    local id=host$((++SERVICES)) keep=false name=Service_$1_TCP_$2
    [[ $2 != node_local_router ]] || keep=true
    [[ $2 == cluster ]] || name+=_$NODE
    # shellcheck disable=SC2054 # a set of columns
    NB+=(-- --id="@$id" create Load_Balancer name="\"$name\"" protocol=tcp vips="{$3}" selection_fields=ip_src,ip_dst
        options:reject=true options:event=false "options:skip_snat=$keep" options:neighbor_responder=none
        options:hairpin_snat_ip='"169.254.169.5 fd69::5"'
        external_ids="{\"k8s.ovn.org/kind\"=\"Service\",\"k8s.ovn.org/owner\"=\"$1\"}")
    [[ $2 == node_*router ]] || NB+=(-- add Logical_Switch "$NODE" load_balancer "@$id")
    [[ $2 == node_switch ]] || NB+=(-- add Logical_Router "GR_$NODE" load_balancer "@$id")
}

nb_egress() {
    cluster_nb_egress
    [[ $NUMBER != 3 ]] ||
        NB+=(-- lr-policy-add ovn_cluster_router 100 'ip4.src == 10.244.3.5' reroute 10.244.3.2)
}
