# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by set.sh and lib.sh
# shellcheck disable=SC2016 # OVN names address sets with a dollar sign
# A large OVN-Kubernetes cluster without interconnect: 100 namespaces with six pods each, two
# on each of three workers, and a port group, an address set and four ACLs for each namespace.
# All pods of a namespace behave alike, and the ACLs name two ports, so that `ovs-offline
# reach` has 100 groups and, with ICMP, three ports. It is for measuring, not for packets:
# the pods' interfaces record nothing and are not in the list of ports.

SET_SUMMARY='OVN-Kubernetes, one zone: 100 namespaces with 600 pods, 100 port groups and 400 ACLs, to measure'
SET_NODES=(worker1 worker2 worker3)
SET_NETWORKS=(underlay)
SET_CENTRAL=one

NAMESPACES=100
PODS_PER_NODE=2

declare -gA CHASSIS=(
    [worker1]=7c6d1e90-3b52-4f08-a1d4-5e6f70820011
    [worker2]=7c6d1e90-3b52-4f08-a1d4-5e6f70820012
    [worker3]=7c6d1e90-3b52-4f08-a1d4-5e6f70820013
)

# pods and addresses, by namespace
declare -gA MEMBERS=() ADDRESSES=()

number() { printf '%s' "${1#worker}"; }
node_ip() { printf '172.18.0.%d' $(($1 + 1)); }
node_mac() { printf '02:42:ac:12:00:%02x' $(($1 + 1)); }
pod_mac() { printf '0a:58:0a:f4:%02x:%02x' "$1" "$2"; }

node_identity() {
    NUMBER=$(number "$1")
    TOPO_HOST=$1
    TOPO_SYSTEM_ID=${CHASSIS[$1]}
    TOPO_REMOTE=tcp:172.18.0.10:6642
    TOPO_OVS_SETTINGS=(
        other_config:vlan-limit=0
        external_ids:ovn-remote="\"unix:$SET/central/ovn/ovnsb_db.sock\""
        external_ids:ovn-encap-type=geneve
        external_ids:ovn-encap-ip="$(node_ip "$NUMBER")"
        external_ids:ovn-monitor-all=true
        external_ids:ovn-openflow-probe-interval=0
        external_ids:ovn-remote-probe-interval=180000
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

# each_pod FUNCTION: calls it with namespace, pod and octet of each pod of the node $NUMBER.
each_pod() {
    local i k namespace
    for ((i = 0; i < NAMESPACES; i++)); do
        printf -v namespace 'ns%02d' "$i"
        for ((k = 0; k < PODS_PER_NODE; k++)); do
            "$1" "$namespace" "web-$(((NUMBER - 1) * PODS_PER_NODE + k))" $((10 + i * PODS_PER_NODE + k))
        done
    done
}

add_pod() {
    local mac interface
    printf -v mac '0a:58:0a:f4:%02x:%02x' "$NUMBER" "$3"
    printf -v interface 'pod%s%s' "${1#ns}" "${2#web-}"
    WORDS+=(-- add-port br-int "$interface" -- set Interface "$interface" mtu_request=1400
        external_ids:iface-id="$1_$2" external_ids:attached_mac="\"$mac\""
        external_ids:ip_addresses="\"10.244.$NUMBER.$3/24\"")
}

node_switch() {
    local other
    add_bridge br-int fail_mode=secure other_config:disable-in-band=true
    take_down br-int
    add_underlay br-eth0 eth0 "$(node_ip "$NUMBER")/24" "$(node_mac "$NUMBER")"
    WORDS=()
    each_pod add_pod
    ovs-vsctl "${WORDS[@]}"
    for other in 1 2 3; do
        ((other == NUMBER)) || meet br-eth0 "$(node_ip $other)" "$(node_mac $other)"
    done
}

node_finish() { :; }

wait_for_sync() { ovn-nbctl --timeout=240 --wait=hv sync; }

set_logical() {
    NB=(-- set NB_Global . options:mac_prefix=0a:58:0a options:northd_probe_interval=5000
        -- lr-add ovn_cluster_router
        -- set Logical_Router ovn_cluster_router options:always_learn_from_arp_request=false
        external_ids:k8s-cluster-router=yes)
    for NODE in "${SET_NODES[@]}"; do
        NUMBER=$(number "$NODE")
        nb_node
    done
    ovn-nbctl "${NB[@]}" >/dev/null
    NB=()
    nb_namespaces
    ovn-nbctl "${NB[@]}" >/dev/null
}

nb_node() {
    NB+=(-- ls-add "$NODE" -- set Logical_Switch "$NODE" other_config:subnet="10.244.$NUMBER.0/24"
        -- lrp-add ovn_cluster_router "rtos-$NODE" "$(pod_mac "$NUMBER" 1)" "10.244.$NUMBER.1/24"
        -- lrp-set-gateway-chassis "rtos-$NODE" "${CHASSIS[$NODE]}" 1
        -- lsp-add "$NODE" "stor-$NODE" -- lsp-set-type "stor-$NODE" router
        -- lsp-set-addresses "stor-$NODE" router -- lsp-set-options "stor-$NODE" router-port="rtos-$NODE")
    each_pod nb_pod
}

nb_pod() {
    local addresses
    printf -v addresses '0a:58:0a:f4:%02x:%02x 10.244.%d.%d' "$NUMBER" "$3" "$NUMBER" "$3"
    NB+=(-- lsp-add "$NODE" "$1_$2" -- lsp-set-addresses "$1_$2" "$addresses"
        -- lsp-set-port-security "$1_$2" "$addresses" -- lsp-set-options "$1_$2" requested-chassis="$NODE"
        -- set Logical_Switch_Port "$1_$2" external_ids:pod=true external_ids:namespace="$1")
    MEMBERS[$1]+=" $1_$2"
    ADDRESSES[$1]+=" 10.244.$NUMBER.$3"
}

# policy_acl NAMESPACE PRIORITY ACTION MATCH: MATCH is about the other end.
policy_acl() {
    local id=acl$((++ACLS))
    NB+=(-- --id=@$id create ACL direction=to-lport priority="$2" action="$3"
        match="\"outport == @a_$1${4:+ && $4}\"" name="\"NP:$1:Ingress\""
        external_ids="{direction=Ingress,\"k8s.ovn.org/name\"=\"$1\",\"k8s.ovn.org/owner-type\"=\"NetworkPolicy\"}"
        -- add Port_Group "a_$1" acls @$id)
}

# Each namespace lets two others and itself in on port 5432. Every second one serves port
# 80 to all pods, the others to three namespaces; every third one drops only TCP by default,
# and so answers ICMP.
nb_namespaces() {
    local i namespace all
    local -a members
    ACLS=0
    for ((i = 0; i < NAMESPACES; i++)); do
        printf -v namespace 'ns%02d' "$i"
        read -ra members <<<"${MEMBERS[$namespace]}"
        NB+=(-- create Address_Set name="a_$namespace" addresses="${ADDRESSES[$namespace]# }"
            external_ids="{\"k8s.ovn.org/name\"=\"$namespace\"}"
            -- pg-add "a_$namespace" "${members[@]}")
        all='ip4.src == 10.244.0.0/16'
        ((i % 2 == 0)) || all="ip4.src == $(sets_of $((i + 1)) $((i + 7)) $((i + 31)))"
        policy_acl "$namespace" 1001 allow '(arp || nd)'
        policy_acl "$namespace" 1001 allow-related "$all && tcp.dst == 80"
        policy_acl "$namespace" 1001 allow-related "ip4.src == $(sets_of "$i" $((i + 3)) $((i + 50))) && tcp.dst == 5432"
        if ((i % 3 == 0)); then
            policy_acl "$namespace" 1000 drop tcp
        else
            policy_acl "$namespace" 1000 drop ''
        fi
    done
}

# sets_of NUMBER...: prints the address sets of namespaces.
sets_of() {
    local i text='' separator=''
    for i in "$@"; do
        printf -v text '%s%s$a_ns%02d' "$text" "$separator" $((i % NAMESPACES))
        separator=', '
    done
    printf '{%s}' "$text"
}
