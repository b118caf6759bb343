# shellcheck shell=bash
# What neutron's agent with the openvswitch firewall writes. Topologies use it.

# vm_flows INTERFACE VLAN MAC IP: prints the flows of one port of br-int. Its security
# group allows pings, ssh, and TCP ports from 8000 to 8063.
vm_flows() {
    local name=$1 vlan=$2 mac=$3 ip=$4 port reg
    port=$(ofport "$name")
    reg="reg5=$port"
    cat <<EOF
table=0,priority=10,arp,in_port=$port,actions=resubmit(,24)
table=0,priority=10,icmp6,in_port=$port,icmp_type=136,actions=resubmit(,24)
table=0,priority=9,in_port=$port,actions=resubmit(,25)
table=24,priority=2,arp,in_port=$port,arp_spa=$ip,actions=resubmit(,25)
table=24,priority=2,icmp6,in_port=$port,icmp_type=136,nd_target=fe80::f816:3eff:fe${mac:9:2}:${mac:15:2},actions=resubmit(,58)
table=25,priority=2,in_port=$port,dl_src=$mac,actions=resubmit(,30)
table=60,priority=100,in_port=$port,actions=load:$port->NXM_NX_REG5[],load:$vlan->NXM_NX_REG6[],resubmit(,71)
table=60,priority=90,dl_vlan=$vlan,dl_dst=$mac,actions=load:$port->NXM_NX_REG5[],load:$vlan->NXM_NX_REG6[],strip_vlan,resubmit(,81)
table=71,priority=95,icmp6,$reg,in_port=$port,dl_src=$mac,icmp_type=135,actions=resubmit(,94)
table=71,priority=95,icmp6,$reg,in_port=$port,dl_src=$mac,icmp_type=133,actions=resubmit(,94)
table=71,priority=95,arp,$reg,in_port=$port,dl_src=$mac,arp_spa=$ip,actions=resubmit(,94)
table=71,priority=80,udp,$reg,in_port=$port,tp_src=68,tp_dst=67,actions=resubmit(,73)
table=71,priority=70,udp,$reg,in_port=$port,tp_src=67,tp_dst=68,actions=resubmit(,93)
table=71,priority=65,ip,$reg,in_port=$port,dl_src=$mac,nw_src=$ip,actions=ct(table=72,zone=NXM_NX_REG6[0..15])
table=71,priority=10,$reg,in_port=$port,actions=resubmit(,93)
table=72,priority=77,ct_state=+est-rel-rpl,tcp,$reg,tp_dst=25,actions=resubmit(,93)
table=72,priority=74,ct_state=+est-rel-rpl,ip,$reg,actions=resubmit(,73)
table=72,priority=74,ct_state=+new-est,ip,$reg,actions=resubmit(,73)
table=72,priority=50,ct_state=+inv+trk,actions=resubmit(,93)
table=72,priority=50,ct_mark=0x1,$reg,actions=resubmit(,93)
table=72,priority=50,ct_state=+est-rel+rpl,ct_zone=$vlan,ct_mark=0,$reg,actions=resubmit(,94)
table=72,priority=50,ct_state=-new-est+rel-inv,ct_zone=$vlan,ct_mark=0,$reg,actions=resubmit(,94)
table=72,priority=40,ct_state=-est,$reg,actions=resubmit(,93)
table=72,priority=40,ct_state=+est,ip,$reg,actions=ct(commit,zone=NXM_NX_REG6[0..15],exec(load:0x1->NXM_NX_CT_MARK[]))
table=73,priority=100,reg6=$vlan,dl_dst=$mac,actions=load:$port->NXM_NX_REG5[],resubmit(,81)
table=73,priority=90,ct_state=+new-est,ip,$reg,actions=ct(commit,zone=NXM_NX_REG6[0..15]),resubmit(,91)
table=73,priority=80,$reg,actions=resubmit(,94)
table=81,priority=100,arp,$reg,actions=output:$port
table=81,priority=100,icmp6,$reg,icmp_type=135,actions=output:$port
table=81,priority=95,udp,$reg,tp_src=67,tp_dst=68,actions=output:$port
table=81,priority=90,ct_state=-trk,ip,$reg,actions=ct(table=82,zone=NXM_NX_REG6[0..15])
table=81,priority=80,ct_state=+trk,$reg,actions=resubmit(,82)
table=82,priority=75,ct_state=+est-rel-rpl,icmp,$reg,actions=output:$port
table=82,priority=75,ct_state=+new-est,icmp,$reg,actions=ct(commit,zone=NXM_NX_REG6[0..15]),output:$port,resubmit(,92)
table=82,priority=77,ct_state=+new-est,tcp,$reg,tp_dst=22,actions=ct(commit,zone=NXM_NX_REG6[0..15]),output:$port,resubmit(,92)
table=82,priority=77,ct_state=+est-rel-rpl,tcp,$reg,tp_dst=22,actions=output:$port
table=82,priority=77,ct_state=+new-est,tcp,$reg,tp_dst=0x1f40/0xffc0,actions=ct(commit,zone=NXM_NX_REG6[0..15]),output:$port,resubmit(,92)
table=82,priority=50,ct_state=+inv+trk,$reg,actions=resubmit(,93)
table=82,priority=50,ct_mark=0x1,$reg,actions=resubmit(,93)
table=82,priority=50,ct_state=+est-rel+rpl,ct_zone=$vlan,ct_mark=0,$reg,actions=output:$port
table=82,priority=50,ct_state=-new-est+rel-inv,ct_zone=$vlan,ct_mark=0,$reg,actions=output:$port
table=82,priority=40,ct_state=-est,$reg,actions=resubmit(,93)
table=82,priority=40,ct_state=+est,ip,$reg,actions=ct(commit,zone=NXM_NX_REG6[0..15],exec(load:0x1->NXM_NX_CT_MARK[]))
EOF
}
