# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of sets
# What neutron's L3 agent does in the namespaces of routers: settings, devices, addresses, and
# the rules of iptables (neutron/agent/l3/*.py and neutron/agent/linux/iptables_manager.py).

# The marks of the agent: a packet for the metadata proxy, a packet that came from outside,
# and the address scope of networks that have none.
METADATA_MARK=0x1/0xffff
OUTSIDE_MARK=0x2/0xffff
NO_SCOPE=0x4000000/0xffff0000
METADATA_PORT=9697

# forward_in NAMESPACE: the settings of a namespace that forwards. Connections live as long as
# a busy machine needs, nothing is sent again by itself, and each packet gets its ICMP error.
forward_in() {
    local timeout
    local -a settings=(
        net.netfilter.nf_conntrack_tcp_be_liberal=1
        net.ipv4.ip_forward=1
        net.ipv4.conf.all.arp_ignore=1
        net.ipv4.conf.all.arp_announce=2
        net.ipv6.conf.all.forwarding=1
        net.ipv4.tcp_synack_retries=0
        net.ipv4.icmp_ratemask=0
        net.ipv6.icmp.ratelimit=0
    )
    for timeout in tcp_timeout_syn_sent tcp_timeout_syn_recv tcp_timeout_unacknowledged tcp_timeout_max_retrans udp_timeout udp_timeout_stream icmp_timeout icmpv6_timeout; do
        settings+=("net.netfilter.nf_conntrack_$timeout=3600")
    done
    in_namespace "$1" sysctl -qw "${settings[@]}"
}

# plug NAMESPACE DEVICE MAC MTU [ADDRESS/LENGTH...]
plug() {
    local namespace=$1 device=$2 mac=$3 mtu=$4 address
    shift 4
    in_namespace "$namespace" ip link set "$device" address "$mac" mtu "$mtu" up
    for address; do
        add_address "$namespace" "$device" "$address"
    done
}

add_address() {
    local -a words=()
    [[ $3 == *:* || $3 == */32 ]] || words=(brd +)
    in_namespace "$1" ip address add "$3" "${words[@]}" dev "$2"
}

# router_filters: prints the IPv4 rules of a router for iptables-restore. It reads:
#   INSIDE     its devices inside, each as DEVICE=MARK
#   OUTSIDE    its device outside, "" for none, and OUTSIDE_IP
#   FLOATING   its floating IPs, each as FLOATING=FIXED
#   KIND       router; distributed, whose OUTSIDE leads to a fip namespace; or snat, which has
#              no metadata proxy
router_filters() {
    echo '*raw'
    agent_chains PREROUTING OUTPUT
    echo COMMIT
    echo '*mangle'
    agent_chains PREROUTING INPUT FORWARD OUTPUT POSTROUTING
    router_marks
    echo COMMIT
    echo '*nat'
    agent_chains PREROUTING OUTPUT POSTROUTING
    router_nat
    echo COMMIT
    echo '*filter'
    agent_filter
    [[ $KIND == snat ]] || metadata_filter
    router_scopes "$([[ $KIND == distributed ]] || echo "$OUTSIDE")"
    echo COMMIT
}

# router_filters6 does the same for IPv6, which has no NAT.
router_filters6() {
    echo '*raw'
    agent_chains PREROUTING OUTPUT
    echo COMMIT
    echo '*mangle'
    agent_chains PREROUTING INPUT FORWARD OUTPUT POSTROUTING
    cat <<EOT
:neutron-l3-agent-scope - [0:0]
-A neutron-l3-agent-PREROUTING -j neutron-l3-agent-scope
-A neutron-l3-agent-PREROUTING -m connmark ! --mark 0x0/0xffff0000 -j CONNMARK --restore-mark --nfmask 0xffff0000 --ctmask 0xffff0000
EOT
    [[ $KIND == snat ]] ||
        echo "-A neutron-l3-agent-PREROUTING -d fe80::a9fe:a9fe/128 -i qr-+ -p tcp -m tcp --dport 80 -j MARK --set-xmark $METADATA_MARK"
    scope_marks
    echo COMMIT
    echo '*nat'
    agent_chains PREROUTING
    [[ $KIND == snat ]] ||
        echo "-A neutron-l3-agent-PREROUTING -d fe80::a9fe:a9fe/128 -i qr-+ -p tcp -m tcp --dport 80 -j REDIRECT --to-ports $METADATA_PORT"
    echo COMMIT
    echo '*filter'
    agent_filter
    [[ $KIND == snat ]] || metadata_filter
    router_scopes ''
    echo COMMIT
}

# agent_chains CHAIN...: wraps built-in chains, as the agent does.
agent_chains() {
    local chain
    for chain; do
        printf ':neutron-l3-agent-%s - [0:0]\n' "$chain"
    done
    for chain; do
        printf -- '-A %s -j neutron-l3-agent-%s\n' "$chain" "$chain"
    done
}

agent_filter() {
    cat <<EOT
:neutron-filter-top - [0:0]
:neutron-l3-agent-FORWARD - [0:0]
:neutron-l3-agent-INPUT - [0:0]
:neutron-l3-agent-OUTPUT - [0:0]
:neutron-l3-agent-local - [0:0]
-A INPUT -j neutron-l3-agent-INPUT
-A FORWARD -j neutron-filter-top
-A FORWARD -j neutron-l3-agent-FORWARD
-A OUTPUT -j neutron-filter-top
-A OUTPUT -j neutron-l3-agent-OUTPUT
-A neutron-filter-top -j neutron-l3-agent-local
EOT
}

metadata_filter() {
    cat <<EOT
-A neutron-l3-agent-INPUT -m mark --mark $METADATA_MARK -j ACCEPT
-A neutron-l3-agent-INPUT -p tcp -m tcp --dport $METADATA_PORT -j DROP
EOT
}

# router_scopes DEVICE: prints the rules that keep address scopes apart. What leaves by DEVICE
# gets an address of its scope.
router_scopes() {
    local pair
    echo ':neutron-l3-agent-scope - [0:0]'
    echo '-A neutron-l3-agent-FORWARD -j neutron-l3-agent-scope'
    for pair in "${INSIDE[@]}" ${OUTSIDE:+"$OUTSIDE=$NO_SCOPE"}; do
        [[ ${pair%%=*} == "$1" ]] ||
            echo "-A neutron-l3-agent-scope -o ${pair%%=*} -m mark ! --mark ${pair#*=} -j DROP"
    done
}

scope_marks() {
    local pair
    for pair in "${INSIDE[@]}" ${OUTSIDE:+"$OUTSIDE=$NO_SCOPE"}; do
        echo "-A neutron-l3-agent-scope -i ${pair%%=*} -j MARK --set-xmark ${pair#*=}"
    done
}

router_marks() {
    cat <<EOT
:neutron-l3-agent-float-snat - [0:0]
:neutron-l3-agent-floatingip - [0:0]
:neutron-l3-agent-mark - [0:0]
:neutron-l3-agent-scope - [0:0]
-A neutron-l3-agent-PREROUTING -j neutron-l3-agent-mark
-A neutron-l3-agent-PREROUTING -j neutron-l3-agent-scope
-A neutron-l3-agent-PREROUTING -m connmark ! --mark 0x0/0xffff0000 -j CONNMARK --restore-mark --nfmask 0xffff0000 --ctmask 0xffff0000
-A neutron-l3-agent-PREROUTING -j neutron-l3-agent-floatingip
-A neutron-l3-agent-float-snat -m connmark --mark 0x0/0xffff0000 -j CONNMARK --save-mark --nfmask 0xffff0000 --ctmask 0xffff0000
EOT
    [[ $KIND == snat ]] ||
        echo "-A neutron-l3-agent-PREROUTING -d 169.254.169.254/32 -i qr-+ -p tcp -m tcp --dport 80 -j MARK --set-xmark $METADATA_MARK"
    scope_marks
    [[ -n $OUTSIDE && $KIND != distributed ]] || return 0
    cat <<EOT
-A neutron-l3-agent-POSTROUTING -o $OUTSIDE -m connmark --mark 0x0/0xffff0000 -j CONNMARK --save-mark --nfmask 0xffff0000 --ctmask 0xffff0000
-A neutron-l3-agent-mark -i $OUTSIDE -j MARK --set-xmark $OUTSIDE_MARK
EOT
}

router_nat() {
    local pair
    cat <<EOT
:neutron-l3-agent-float-snat - [0:0]
:neutron-l3-agent-snat - [0:0]
:neutron-postrouting-bottom - [0:0]
-A POSTROUTING -j neutron-postrouting-bottom
-A neutron-postrouting-bottom -m comment --comment "Perform source NAT on outgoing traffic." -j neutron-l3-agent-snat
EOT
    [[ $KIND == snat ]] ||
        echo "-A neutron-l3-agent-PREROUTING -d 169.254.169.254/32 -i qr-+ -p tcp -m tcp --dport 80 -j REDIRECT --to-ports $METADATA_PORT"
    if [[ $KIND == distributed ]]; then
        distributed_nat
        return
    fi
    echo '-A neutron-l3-agent-snat -j neutron-l3-agent-float-snat'
    for pair in "${FLOATING[@]}"; do
        cat <<EOT
-A neutron-l3-agent-PREROUTING -d ${pair%%=*}/32 -j DNAT --to-destination ${pair#*=}
-A neutron-l3-agent-OUTPUT -d ${pair%%=*}/32 -j DNAT --to-destination ${pair#*=}
-A neutron-l3-agent-float-snat -s ${pair#*=}/32 -j SNAT --to-source ${pair%%=*} --random-fully
EOT
    done
    [[ -n $OUTSIDE ]] || return 0
    cat <<EOT
-A neutron-l3-agent-snat -o $OUTSIDE -j SNAT --to-source $OUTSIDE_IP --random-fully
-A neutron-l3-agent-POSTROUTING ! -o $OUTSIDE -m conntrack ! --ctstate DNAT -j ACCEPT
-A neutron-l3-agent-snat -m mark ! --mark $OUTSIDE_MARK -m conntrack --ctstate DNAT -j SNAT --to-source $OUTSIDE_IP --random-fully
EOT
}

# distributed_nat: without a floating IP on the node, a distributed router translates nothing.
distributed_nat() {
    local pair
    ((${#FLOATING[@]})) || return 0
    echo '-A neutron-l3-agent-snat -j neutron-l3-agent-float-snat'
    echo "-A neutron-l3-agent-POSTROUTING ! -o $OUTSIDE -m conntrack ! --ctstate DNAT -j ACCEPT"
    for pair in "${FLOATING[@]}"; do
        cat <<EOT
-A neutron-l3-agent-PREROUTING -d ${pair%%=*}/32 -i $OUTSIDE -j DNAT --to-destination ${pair#*=}
-A neutron-l3-agent-float-snat -s ${pair#*=}/32 -j SNAT --to-source ${pair%%=*} --random-fully
EOT
    done
}

# fip_filters: prints the rules of a fip namespace, which tracks no connections.
fip_filters() {
    echo '*raw'
    agent_chains PREROUTING OUTPUT
    echo '-A neutron-l3-agent-PREROUTING -j CT --notrack'
    echo COMMIT
    echo '*mangle'
    agent_chains PREROUTING INPUT FORWARD OUTPUT POSTROUTING
    echo ':neutron-l3-agent-mark - [0:0]'
    echo '-A neutron-l3-agent-PREROUTING -j neutron-l3-agent-mark'
    echo COMMIT
    echo '*nat'
    agent_chains PREROUTING OUTPUT POSTROUTING
    cat <<EOT
:neutron-l3-agent-float-snat - [0:0]
:neutron-l3-agent-snat - [0:0]
:neutron-postrouting-bottom - [0:0]
-A POSTROUTING -j neutron-postrouting-bottom
-A neutron-postrouting-bottom -m comment --comment "Perform source NAT on outgoing traffic." -j neutron-l3-agent-snat
-A neutron-l3-agent-snat -j neutron-l3-agent-float-snat
EOT
    echo COMMIT
    echo '*filter'
    agent_filter
    echo COMMIT
}

fip_filters6() {
    echo '*raw'
    agent_chains PREROUTING OUTPUT
    echo COMMIT
    echo '*mangle'
    agent_chains PREROUTING INPUT FORWARD OUTPUT POSTROUTING
    echo COMMIT
    echo '*nat'
    agent_chains PREROUTING
    echo COMMIT
    echo '*filter'
    agent_filter
    echo COMMIT
}

# filter NAMESPACE: gives a namespace the rules of the router that is described.
filter() {
    router_filters | in_namespace "$1" iptables-restore
    router_filters6 | in_namespace "$1" ip6tables-restore
}
