# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by lib.sh
# A storage and compute node with a bond of every kind: LACP with a real
# partner (a second ovs-vswitchd at the other end of the cables), source
# balancing, active-backup with a primary that is down, and bonds with failures.
#
# Differences from a real node: cables are sockets between two dummies. As on
# every node, the member that gets a hash is random; bond/show prints it.

TOPO_SUMMARY='bonds of every kind: LACP with a real partner, balance-slb, active-backup, lacp=off, failed and downed members'
TOPO_HOST=storage-07
TOPO_SYSTEM_ID=5b0d9e7c-2f41-4a86-9c33-70e1d2a4b607
TOPO_OVN=no
# A device of a bond that no longer exists: it fails, like an unknown type here.
TOPO_DISGUISE=("enp9s0f1 -")

MAC=52:54:00:b0
CABLES=(enp1s0f0 enp1s0f1 enp2s0f0 enp2s0f1 enp3s0f0 enp3s0f1 enp6s0f0 enp6s0f1)

topo_node() {
    start_partner
    partner_bonds
    lag_bridge
    slb_bridge
    backup_bridge
    trouble_bridge
}

# The partner has one switch for each bond.
partner_bonds() {
    local bond names name
    local -a ends
    for bond in 'lag1 enp1s0f0 enp1s0f1' 'lag2 enp2s0f0 enp2s0f1' 'lag3 enp3s0f0 enp3s0f1'; do
        read -r bond names <<<"$bond"
        ends=()
        for name in $names; do
            ends+=(-- set Interface "$name" "$(far_end "$name")")
        done
        # shellcheck disable=SC2086 # the members are arguments
        partner ovs-vsctl --no-wait add-br "sw-$bond" \
            -- set Bridge "sw-$bond" other_config:hwaddr="\"02:1a:c5:00:00:0${bond#lag}\"" \
            -- add-bond "sw-$bond" "$bond" $names bond_mode=balance-tcp lacp=active \
            other_config:lacp-time=fast "${ends[@]}"
    done
    # Only one end of this bond speaks LACP, and only on one cable.
    partner ovs-vsctl add-br sw-half -- set Bridge sw-half other_config:hwaddr='"02:1a:c5:00:00:06"' \
        -- add-port sw-half enp6s0f0 -- set Port enp6s0f0 lacp=active other_config:lacp-time=fast \
        -- set Interface enp6s0f0 "$(far_end enp6s0f0)"
}

# add_vms BRIDGE NAME:OPTION,OPTION...: adds ports one after the other, as VMs
# start.
add_vms() {
    local bridge=$1 port
    local -a settings
    shift
    for port in "$@"; do
        IFS=, read -ra settings <<<"${port#*:}"
        ovs-vsctl add-port "$bridge" "${port%%:*}" "${settings[@]//+/,}"
    done
}

# cabled_bond BRIDGE BOND MEMBERS SETTINGS...
cabled_bond() {
    local bridge=$1 bond=$2 members=$3 name
    local -a ends=()
    shift 3
    for name in $members; do
        [[ " ${CABLES[*]} " != *" $name "* ]] || ends+=(-- set Interface "$name" "$(near_end "$name")")
    done
    # shellcheck disable=SC2086 # the members are arguments
    ovs-vsctl add-bond "$bridge" "$bond" $members "$@" "${ends[@]}"
}

# LACP: active and fast; passive and slow, with keys and priorities; and a bond
# one of whose cables leads to another switch.
lag_bridge() {
    ovs-vsctl add-br br-lag -- set Bridge br-lag datapath_type=system fail_mode=standalone \
        other_config:hwaddr="\"$MAC:00:01\""
    add_vms br-lag vm101:tag=10
    cabled_bond br-lag bond-lag1 'enp1s0f0 enp1s0f1' bond_mode=balance-tcp lacp=active \
        other_config:lacp-time=fast trunks=10,20,30
    add_vms br-lag vm102:tag=20 vm103:tag=10
    cabled_bond br-lag bond-lag2 'enp2s0f0 enp2s0f1' bond_mode=balance-slb lacp=passive \
        other_config:lacp-time=fast other_config:bond-rebalance-interval=0 vlan_mode=native-untagged tag=40 \
        trunks=41,42 other_config:lacp-system-id="\"$MAC:ff:02\"" other_config:lacp-system-priority=100 \
        -- set Interface enp2s0f0 other_config:lacp-port-priority=10 other_config:lacp-aggregation-key=7 \
        -- set Interface enp2s0f1 other_config:lacp-port-priority=20 other_config:lacp-aggregation-key=7
    add_vms br-lag vm104:tag=40 vm105:tag=41
    cabled_bond br-lag bond-lag3 'enp3s0f0 enp3s0f1' bond_mode=active-backup lacp=active \
        other_config:lacp-time=fast tag=50
    add_vms br-lag vm106:tag=50
    cabled_bond br-lag bond-half 'enp6s0f0 enp6s0f1' bond_mode=balance-tcp lacp=active \
        other_config:lacp-time=fast other_config:bond-rebalance-interval=0 tag=60
    add_vms br-lag vm107:tag=60
}

# Source balancing with three members, one of them administratively down; and a
# bond with its own hash basis that receives on all members.
slb_bridge() {
    ovs-vsctl add-br br-slb -- set Bridge br-slb datapath_type=system other_config:hwaddr="\"$MAC:00:02\"" \
        protocols=OpenFlow10,OpenFlow13,OpenFlow15
    add_vms br-slb vm201:tag=70
    ovs-vsctl add-bond br-slb bond-slb enp4s0f0 enp4s0f1 enp4s0f2 bond_mode=balance-slb \
        bond_updelay=0 bond_downdelay=0 other_config:bond-rebalance-interval=0
    add_vms br-slb vm202:tag=70 vm203:trunks=70+71
    ovs-vsctl add-bond br-slb bond-all enp5s0f0 enp5s0f1 bond_mode=balance-slb tag=72 \
        other_config:all-members-active=true other_config:bond-hash-basis=77
    add_vms br-slb vm204:tag=72 vm205:vlan_mode=native-tagged,tag=70,trunks=70+72
}

# Active-backup: with a primary that is down, without a primary, and with miimon
# in place of carrier detection.
backup_bridge() {
    ovs-vsctl add-br br-backup -- set Bridge br-backup datapath_type=system fail_mode=secure \
        other_config:hwaddr="\"$MAC:00:03\""
    ovs-vsctl add-bond br-backup bond-ab enp7s0f0 enp7s0f1 enp7s0f2 bond_mode=active-backup \
        other_config:bond-primary=enp7s0f0 trunks=80,81
    add_vms br-backup vm301:tag=80 vm302:tag=81
    ovs-vsctl add-bond br-backup bond-ab2 enp8s0f0 enp8s0f1 bond_mode=active-backup tag=82 \
        bond_fake_iface=true other_config:bond-detect-mode=miimon other_config:bond-miimon-interval=100
    add_vms br-backup vm303:tag=82
    ovs-vsctl add-port br-backup to-trouble tag=80 -- set Interface to-trouble type=patch options:peer=to-backup
}

# A bond with a member that no longer exists; balance-tcp without LACP, which
# drops all packets; LACP without a partner, with and without fallback; a bond
# whose members are all down.
trouble_bridge() {
    ovs-vsctl add-br br-trouble -- set Bridge br-trouble datapath_type=system \
        other_config:hwaddr="\"$MAC:00:04\"" \
        -- add-port br-trouble to-backup tag=80 -- set Interface to-backup type=patch options:peer=to-trouble
    ovs-vsctl --no-wait add-bond br-trouble bond-gone enp9s0f0 enp9s0f1 bond_mode=balance-slb tag=90 \
        other_config:bond-rebalance-interval=0 -- set Interface enp9s0f1 type=dpdk
    add_vms br-trouble vm401:tag=90 vm402:tag=91
    ovs-vsctl --no-wait add-bond br-trouble bond-off enp10s0f0 enp10s0f1 bond_mode=balance-tcp lacp=off tag=91
    add_vms br-trouble vm403:tag=92
    ovs-vsctl --no-wait add-bond br-trouble bond-alone enp11s0f0 enp11s0f1 bond_mode=balance-tcp \
        lacp=active other_config:lacp-time=fast tag=92
    add_vms br-trouble vm404:tag=93
    ovs-vsctl --no-wait add-bond br-trouble bond-fallback enp12s0f0 enp12s0f1 bond_mode=balance-tcp \
        lacp=active other_config:lacp-time=fast other_config:lacp-fallback-ab=true tag=93 \
        other_config:bond-primary=enp12s0f1
    ovs-vsctl --no-wait add-bond br-trouble bond-down enp13s0f0 enp13s0f1 bond_mode=active-backup tag=94
    add_vms br-trouble vm405:tag=94 vm406:trunks=90+91+92+93+94
}

# Flows like those of a top-of-rack switch: past a bond, into a bond, and to a
# single member.
topo_flows() {
    add_flows br-backup OpenFlow13 <<'FLOWS'
table=0,priority=100,dl_dst=01:80:c2:00:00:00/ff:ff:ff:ff:ff:f0,actions=drop
table=0,priority=50,tcp,in_port=@vm301@,tp_dst=3260,actions=set_queue:1,push_vlan:0x8100,set_field:4176->vlan_vid,output:@enp7s0f2@
table=0,priority=40,udp,in_port=@vm301@,actions=resubmit(,10)
table=0,priority=0,actions=NORMAL
table=10,priority=10,udp,tp_dst=53,actions=mod_dl_dst:02:80:00:00:00:53,NORMAL
table=10,priority=0,actions=output:@enp7s0f0@,output:@enp7s0f1@
FLOWS
    add_flows br-slb OpenFlow13 <<'FLOWS'
table=0,priority=60,tcp,in_port=@vm203@,dl_vlan=71,actions=bundle(symmetric_l4,0,hrw,ofport,members:@enp4s0f0@,@enp4s0f1@,@enp4s0f2@)
table=0,priority=60,udp,in_port=@vm203@,dl_vlan=71,actions=bundle(eth_src,0,active_backup,ofport,members:@enp4s0f2@,@enp4s0f1@)
table=0,priority=50,sctp,actions=bundle_load(symmetric_l4,50,active_backup,ofport,reg1[0..15],members:@enp4s0f2@,@enp4s0f0@),output:NXM_NX_REG1[0..15]
FLOWS
}

is_negotiated() {
    local bond
    for bond in bond-lag1 bond-lag2 bond-lag3; do
        [[ $(ovs-appctl lacp/show $bond | grep -c ': current attached') == 2 &&
            $(ovs-appctl bond/show $bond | grep -c 'may_enable: true') == 2 ]] || return 1
    done
    [[ $(ovs-appctl lacp/show bond-half | grep -c ': current attached') == 1 &&
        $(ovs-appctl lacp/show bond-half | grep -c ': defaulted detached') == 1 ]]
}

has_given_up() {
    [[ $(ovs-appctl lacp/show bond-alone | grep -c ': defaulted') == 2 &&
        $(ovs-appctl lacp/show bond-fallback | grep -c ': defaulted') == 2 &&
        $(ovs-appctl bond/show bond-fallback | grep -c 'may_enable: true') == 2 ]]
}

topo_finish() {
    local member arp='arp,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1'
    for member in enp4s0f2 enp7s0f0 enp13s0f0 enp13s0f1; do
        ovs-appctl netdev-dummy/set-admin-state "$member" down >/dev/null
    done
    topo_flows
    wait_for "LACP to be negotiated" 15 is_negotiated
    wait_for "LACP to give up" 15 has_given_up
    ovs-appctl bond/set-active-member bond-slb enp4s0f1 >/dev/null
    ovs-appctl bond/set-active-member bond-all enp5s0f0 >/dev/null
    ovs-appctl bond/set-active-member bond-ab enp7s0f2 >/dev/null
    ovs-appctl bond/set-active-member bond-ab2 enp8s0f1 >/dev/null
    ovs-appctl bond/set-active-member bond-lag1 enp1s0f1 >/dev/null
    ovs-appctl bond/set-active-member bond-lag3 enp3s0f1 >/dev/null
    # Hosts beyond the bonds (learned on a member), and local ones.
    hear br-lag "in_port=@enp1s0f0@,dl_vlan=10,$arp,dl_src=02:10:00:00:00:01"
    hear br-lag "in_port=@enp1s0f1@,dl_vlan=20,$arp,dl_src=02:20:00:00:00:01"
    hear br-lag "in_port=@enp2s0f1@,$arp,dl_src=02:40:00:00:00:01"
    hear br-lag "in_port=@enp2s0f0@,dl_vlan=41,$arp,dl_src=02:41:00:00:00:01"
    hear br-lag "in_port=@enp3s0f1@,$arp,dl_src=02:50:00:00:00:01"
    hear br-lag "in_port=@enp6s0f0@,$arp,dl_src=02:60:00:00:00:01"
    hear br-lag "in_port=@vm101@,$arp,dl_src=02:10:00:00:01:01"
    hear br-lag "in_port=@vm102@,$arp,dl_src=02:20:00:00:01:02"
    hear br-slb "in_port=@enp4s0f1@,dl_vlan=70,$arp,dl_src=02:70:00:00:00:01"
    hear br-slb "in_port=@enp5s0f0@,$arp,dl_src=02:72:00:00:00:01"
    hear br-slb "in_port=@vm201@,$arp,dl_src=02:70:00:00:02:01"
    hear br-slb "in_port=@vm203@,dl_vlan=71,$arp,dl_src=02:71:00:00:02:03"
    hear br-backup "in_port=@enp7s0f2@,dl_vlan=80,$arp,dl_src=02:80:00:00:00:01"
    hear br-backup "in_port=@enp8s0f1@,$arp,dl_src=02:82:00:00:00:01"
    hear br-trouble "in_port=@enp9s0f0@,$arp,dl_src=02:90:00:00:00:01"
    hear br-trouble "in_port=@enp12s0f1@,$arp,dl_src=02:93:00:00:00:01"
    add_learned br-trouble enp10s0f0 91 02:91:00:00:00:01
    add_learned br-trouble enp11s0f1 92 02:92:00:00:00:01
    add_learned br-trouble enp13s0f0 94 02:94:00:00:00:01
    met_before
}

topo_packets() {
    local all=dl_dst=ff:ff:ff:ff:ff:ff ip=nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64 n
    echo '# LACP: out by hash, back in by either member, floods, trunks'
    for n in 1 2 3; do
        cat <<PACKETS
br-lag||in_port=@vm101@,tcp,dl_dst=02:10:00:00:00:01,dl_src=02:10:00:00:01:01,$ip,tp_src=400$n,tp_dst=443
br-lag||in_port=@vm102@,udp,dl_dst=02:20:00:00:00:01,dl_src=02:20:00:00:01:02,$ip,udp_src=400$n,udp_dst=53
br-lag||in_port=@vm104@,tcp,dl_dst=02:40:00:00:00:01,dl_src=02:40:00:00:01:0$n,$ip,tp_src=4000,tp_dst=443
br-lag||in_port=@vm105@,tcp,dl_dst=02:41:00:00:00:01,dl_src=02:41:00:00:01:0$n,$ip,tp_src=4000,tp_dst=443
br-slb||in_port=@vm201@,tcp,dl_dst=02:70:00:00:00:01,dl_src=02:70:00:00:02:0$n,$ip,tp_src=4000,tp_dst=443
br-slb||in_port=@vm204@,tcp,dl_dst=02:72:00:00:00:01,dl_src=02:72:00:00:02:0$n,$ip,tp_src=4000,tp_dst=443
br-slb||in_port=@vm203@,dl_vlan=71,tcp,dl_dst=02:71:00:00:00:01,dl_src=02:71:00:00:02:03,$ip,tp_src=500$n,tp_dst=443
br-trouble||in_port=@vm401@,tcp,dl_dst=02:90:00:00:00:01,dl_src=02:90:00:00:04:0$n,$ip,tp_src=4000,tp_dst=443
PACKETS
    done
    cat <<PACKETS
br-lag||in_port=@vm103@,arp,$all,dl_src=02:10:00:00:01:03,arp_op=1
br-lag||in_port=@vm101@,ip,dl_dst=02:10:00:00:00:99,dl_src=02:10:00:00:01:01,$ip,nw_proto=47
br-lag||in_port=@vm101@,tcp6,dl_dst=02:10:00:00:00:01,dl_src=02:10:00:00:01:01,ipv6_src=fd00::1,ipv6_dst=fd00::2,tp_src=1,tp_dst=2
br-lag||in_port=@vm101@,ip,dl_dst=02:10:00:00:00:01,dl_src=02:10:00:00:01:01,$ip,nw_proto=6,nw_frag=later
br-lag||in_port=@vm106@,tcp,dl_dst=02:50:00:00:00:01,dl_src=02:50:00:00:01:06,$ip,tp_src=1,tp_dst=2
br-lag||in_port=@vm106@,arp,$all,dl_src=02:50:00:00:01:06,arp_op=1
br-lag||in_port=@vm107@,tcp,dl_dst=02:60:00:00:00:01,dl_src=02:60:00:00:01:07,$ip,tp_src=1,tp_dst=2
br-lag||in_port=@enp1s0f0@,dl_vlan=10,tcp,dl_dst=02:10:00:00:01:01,dl_src=02:10:00:00:00:01,$ip,tp_src=443,tp_dst=4001
br-lag||in_port=@enp1s0f1@,dl_vlan=10,tcp,dl_dst=02:10:00:00:01:01,dl_src=02:10:00:00:00:01,$ip,tp_src=443,tp_dst=4001
br-lag||in_port=@enp1s0f1@,dl_vlan=30,arp,$all,dl_src=02:30:00:00:00:01,arp_op=1
br-lag||in_port=@enp1s0f0@,dl_vlan=99,arp,$all,dl_src=02:99:00:00:00:01,arp_op=1
br-lag||in_port=@enp1s0f0@,dl_dst=01:80:c2:00:00:02,dl_src=02:1a:c5:00:00:01,dl_type=0x8809
br-lag||in_port=@enp2s0f0@,arp,$all,dl_src=02:40:00:00:00:02,arp_op=1
br-lag||in_port=@enp2s0f1@,dl_vlan=42,arp,$all,dl_src=02:42:00:00:00:02,arp_op=1
br-lag||in_port=@enp3s0f0@,arp,$all,dl_src=02:50:00:00:00:02,arp_op=1
br-lag||in_port=@enp3s0f1@,arp,$all,dl_src=02:50:00:00:00:02,arp_op=1
br-lag||in_port=@enp6s0f0@,arp,$all,dl_src=02:60:00:00:00:02,arp_op=1
br-lag||in_port=@enp6s0f1@,arp,$all,dl_src=02:60:00:00:00:02,arp_op=1
br-lag||in_port=LOCAL,arp,$all,dl_src=$MAC:00:01,arp_op=1
# source balancing: loops and duplicates are dropped, one member floods
br-slb||in_port=@vm202@,arp,$all,dl_src=02:70:00:00:02:02,arp_op=1
br-slb||in_port=@vm205@,ip,dl_dst=02:70:00:00:00:01,dl_src=02:70:00:00:02:05,$ip,nw_proto=1
br-slb||in_port=@enp4s0f0@,dl_vlan=70,arp,$all,dl_src=02:70:00:00:00:02,arp_op=1
br-slb||in_port=@enp4s0f1@,dl_vlan=70,arp,$all,dl_src=02:70:00:00:00:02,arp_op=1
br-slb||in_port=@enp4s0f0@,dl_vlan=70,tcp,dl_dst=02:70:00:00:02:01,dl_src=02:70:00:00:00:01,$ip,tp_src=1,tp_dst=2
br-slb||in_port=@enp4s0f1@,dl_vlan=70,tcp,dl_dst=02:70:00:00:00:77,dl_src=02:70:00:00:02:01,$ip,tp_src=1,tp_dst=2
br-slb||in_port=@enp4s0f2@,dl_vlan=70,arp,$all,dl_src=02:70:00:00:00:02,arp_op=1
br-slb||in_port=@enp5s0f0@,arp,$all,dl_src=02:72:00:00:00:02,arp_op=1
br-slb||in_port=@enp5s0f1@,arp,$all,dl_src=02:72:00:00:00:02,arp_op=1
br-slb||in_port=@vm203@,dl_vlan=71,udp,dl_dst=02:71:00:00:00:01,dl_src=02:71:00:00:02:03,$ip,udp_src=1,udp_dst=2
br-slb||in_port=@vm201@,sctp,dl_dst=02:70:00:00:00:01,dl_src=02:70:00:00:02:01,$ip,sctp_src=1,sctp_dst=2
# active-backup: the primary is down
br-backup||in_port=@vm301@,tcp,dl_dst=02:80:00:00:00:01,dl_src=02:80:00:00:03:01,$ip,tp_src=1,tp_dst=2
br-backup||in_port=@vm301@,tcp,dl_dst=02:80:00:00:00:01,dl_src=02:80:00:00:03:01,$ip,tp_src=1,tp_dst=3260
br-backup||in_port=@vm301@,udp,dl_dst=02:80:00:00:00:01,dl_src=02:80:00:00:03:01,$ip,udp_src=1,udp_dst=53
br-backup||in_port=@vm301@,udp,dl_dst=02:80:00:00:00:01,dl_src=02:80:00:00:03:01,$ip,udp_src=1,udp_dst=54
br-backup||in_port=@vm302@,arp,$all,dl_src=02:81:00:00:03:02,arp_op=1
br-backup||in_port=@vm303@,arp,$all,dl_src=02:82:00:00:03:03,arp_op=1
br-backup||in_port=@vm303@,ip,dl_dst=02:82:00:00:00:01,dl_src=02:82:00:00:03:03,$ip,nw_proto=1
br-backup||in_port=@enp7s0f0@,dl_vlan=80,arp,$all,dl_src=02:80:00:00:00:02,arp_op=1
br-backup||in_port=@enp7s0f1@,dl_vlan=80,arp,$all,dl_src=02:80:00:00:00:02,arp_op=1
br-backup||in_port=@enp7s0f2@,dl_vlan=80,arp,$all,dl_src=02:80:00:00:00:02,arp_op=1
br-backup||in_port=@enp8s0f0@,arp,$all,dl_src=02:82:00:00:00:02,arp_op=1
br-backup||in_port=@enp8s0f1@,arp,$all,dl_src=02:82:00:00:00:02,arp_op=1
# failures
br-trouble||in_port=@vm401@,arp,$all,dl_src=02:90:00:00:04:01,arp_op=1
br-trouble||in_port=@enp9s0f0@,arp,$all,dl_src=02:90:00:00:00:02,arp_op=1
br-trouble||in_port=@vm402@,tcp,dl_dst=02:91:00:00:00:01,dl_src=02:91:00:00:04:02,$ip,tp_src=1,tp_dst=2
br-trouble||in_port=@vm402@,arp,$all,dl_src=02:91:00:00:04:02,arp_op=1
br-trouble||in_port=@enp10s0f0@,arp,$all,dl_src=02:91:00:00:00:02,arp_op=1
br-trouble||in_port=@enp10s0f1@,tcp,dl_dst=02:91:00:00:04:02,dl_src=02:91:00:00:00:01,$ip,tp_src=2,tp_dst=1
br-trouble||in_port=@vm403@,tcp,dl_dst=02:92:00:00:00:01,dl_src=02:92:00:00:04:03,$ip,tp_src=1,tp_dst=2
br-trouble||in_port=@enp11s0f0@,arp,$all,dl_src=02:92:00:00:00:02,arp_op=1
br-trouble||in_port=@vm404@,tcp,dl_dst=02:93:00:00:00:01,dl_src=02:93:00:00:04:04,$ip,tp_src=1,tp_dst=2
br-trouble||in_port=@enp12s0f0@,arp,$all,dl_src=02:93:00:00:00:02,arp_op=1
br-trouble||in_port=@enp12s0f1@,arp,$all,dl_src=02:93:00:00:00:02,arp_op=1
br-trouble||in_port=@vm405@,tcp,dl_dst=02:94:00:00:00:01,dl_src=02:94:00:00:04:05,$ip,tp_src=1,tp_dst=2
br-trouble||in_port=@enp13s0f1@,arp,$all,dl_src=02:94:00:00:00:02,arp_op=1
br-trouble||in_port=@vm406@,dl_vlan=91,arp,$all,dl_src=02:91:00:00:04:06,arp_op=1
br-trouble||in_port=@vm406@,dl_vlan=94,arp,$all,dl_src=02:94:00:00:04:06,arp_op=1
PACKETS
}
