# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by lib.sh
# A node whose controller uses all of OpenFlow: every kind of action, group and
# meter, learned flows, conjunctions, connection tracking with NAT both ways,
# MPLS, NSH and tunnel metadata.
#
# Differences from a real node: dscp_remark bands are missing, because no
# datapath accepts them. The kernel's conntrack helpers are only names for a
# dummy, and appear in the traces. Timeout policies come only from the
# database's zones, not from flows.

TOPO_SUMMARY='every kind of action, group and meter; learn, conjunctions, ct with NAT, MPLS, NSH, tunnel metadata'
TOPO_HOST=pipeline-11
TOPO_SYSTEM_ID=2ad5c8f1-7b90-4c46-a8d2-64e0b15f9c11
TOPO_OVN=no
TOPO_OVS_SETTINGS=(other_config:vlan-limit=2)

topo_node() {
    local port
    ovs-vsctl add-br br-pipe -- set Bridge br-pipe datapath_type=system fail_mode=secure \
        protocols=OpenFlow10,OpenFlow13,OpenFlow14,OpenFlow15 other_config:hwaddr='"52:54:00:d0:00:01"'
    for port in a1 a2 a3 a4 b-down b1 b2; do
        ovs-vsctl add-port br-pipe "$port"
    done
    ovs-vsctl add-port br-pipe gnv-flow -- set Interface gnv-flow type=geneve options:remote_ip=flow options:key=flow
    ovs-vsctl add-br br-next -- set Bridge br-next datapath_type=system fail_mode=secure \
        protocols=OpenFlow13,OpenFlow15 other_config:hwaddr='"52:54:00:d0:00:02"'
    ovs-vsctl add-port br-pipe to-next -- set Interface to-next type=patch options:peer=to-pipe \
        -- add-port br-next to-pipe -- set Interface to-pipe type=patch options:peer=to-next
    ovs-vsctl add-port br-next c1
    ovs-vsctl add-port br-next c2
    ovs-vsctl add-port br-pipe a5
    ovs-vsctl --id=@br get Bridge br-pipe -- --id=@x create IPFIX 'targets="127.0.0.1:4739"' \
        -- create Flow_Sample_Collector_Set id=1 bridge=@br ipfix=@x \
        -- create Flow_Sample_Collector_Set id=2 bridge=@br >/dev/null
    ovs-vsctl -- set Port a2 qos=@q -- --id=@q create QoS type=linux-htb other_config:max-rate=1000000000 \
        queues=1=@q1,2=@q2 -- --id=@q1 create Queue other_config:min-rate=1000000 \
        -- --id=@q2 create Queue other_config:max-rate=5000000 >/dev/null
}

meters() {
    local meter
    for meter in \
        'meter=1 pktps burst stats bands=type=drop rate=1000 burst_size=100' \
        'meter=2 kbps burst stats bands=type=drop rate=20000 burst_size=16000' \
        'meter=3 kbps bands=type=drop rate=5000' \
        'meter=4 pktps stats bands=type=drop rate=50' \
        'meter=5 kbps stats bands=type=drop rate=1000,type=drop rate=9000' \
        'meter=700 pktps bands=type=drop rate=7' \
        'meter=controller pktps bands=type=drop rate=500'; do
        ovs-ofctl -O OpenFlow15 add-meter br-pipe "$meter"
    done
    ovs-ofctl -O OpenFlow15 del-meter br-pipe meter=3
    ovs-ofctl -O OpenFlow15 add-meter br-pipe 'meter=3 kbps bands=type=drop rate=6000'
    ovs-ofctl -O OpenFlow15 add-meter br-next 'meter=9 pktps bands=type=drop rate=9'
}

# Groups of every type, with buckets for ports, one of which is down, for
# groups, and for tables.
groups() {
    ovs-ofctl -O OpenFlow15 add-tlv-map br-pipe \
        '{class=0x102,type=0x80,len=4}->tun_metadata0,{class=0xffff,type=0x1,len=16}->tun_metadata7'
    numbered_ports <<'GROUPS' | ovs-ofctl -O OpenFlow15 add-groups br-pipe -
group_id=1,type=all,bucket=bucket_id:1,actions=output:@a2@,bucket=bucket_id:2,actions=mod_vlan_vid:7,output:@a3@
group_id=2,type=indirect,bucket=bucket_id:0,actions=mod_nw_tos:184,output:@a4@
group_id=3,type=select,selection_method=dp_hash,bucket=bucket_id:0,weight:100,actions=output:@a2@,bucket=bucket_id:1,weight:50,actions=output:@a3@
group_id=4,type=select,selection_method=hash,fields(ip_src,ip_dst=255.255.255.0,tcp_src),bucket=bucket_id:10,weight:10,actions=output:@a2@,bucket=bucket_id:11,weight:10,actions=output:@a3@,bucket=bucket_id:12,weight:20,actions=output:@a4@
group_id=5,type=select,bucket=bucket_id:1,weight:0,actions=output:@a2@,bucket=bucket_id:2,weight:30,watch_port:@a3@,actions=output:@a3@,bucket=bucket_id:3,weight:70,watch_port:@b-down@,actions=output:@b-down@
group_id=6,type=ff,bucket=bucket_id:1,watch_port:@b-down@,actions=output:@b-down@,bucket=bucket_id:2,watch_port:@a3@,actions=output:@a3@
group_id=7,type=ff,bucket=bucket_id:1,watch_port:@b-down@,actions=output:@b-down@
group_id=8,type=ff,bucket=bucket_id:1,watch_group:7,actions=group:7,bucket=bucket_id:2,watch_group:6,actions=group:6
group_id=9,type=all,bucket=bucket_id:1,actions=group:2,bucket=bucket_id:2,actions=group:8,bucket=bucket_id:3,actions=push_vlan:0x8100,set_field:4105->vlan_vid,group:1
group_id=10,type=select,selection_method=dp_hash,selection_method_param=7,bucket=bucket_id:1,weight:1,actions=group:2,bucket=bucket_id:2,weight:1,actions=drop,bucket=bucket_id:3,weight:2,actions=resubmit(,90)
group_id=11,type=select,selection_method=dp_hash,bucket=bucket_id:0,weight:100,actions=ct(commit,table=91,zone=7,nat(dst=10.80.0.1:8080),exec(set_field:2->ct_mark)),bucket=bucket_id:1,weight:100,actions=ct(commit,table=91,zone=7,nat(dst=10.80.0.2:8080),exec(set_field:2->ct_mark))
group_id=12,type=all
group_id=13,type=indirect,bucket=bucket_id:0,actions=set_field:0xd->reg13,resubmit(,92)
group_id=4294967040,type=all,bucket=bucket_id:4294967040,actions=output:@a5@
GROUPS
    numbered_ports <<'GROUPS' | ovs-ofctl -O OpenFlow13 add-groups br-next -
group_id=1,type=select,bucket=weight:1,actions=output:@c1@,bucket=weight:3,actions=output:@c2@
GROUPS
}

# The actions for TCP port N; topo_packets has a packet for each.
ACTIONS=(
    'output:@a2@'
    'load:0x2->NXM_NX_REG0[0..15],output:NXM_NX_REG0[0..15]'
    'set_field:10.77.0.0/255.255.0.0->ip_dst,mod_nw_src:10.1.1.1,mod_tp_dst:81,mod_tp_src:82,mod_dl_src:02:00:00:00:00:77,output:@a2@'
    'mod_nw_tos:184,set_field:1->nw_ecn,mod_nw_ttl:9,output:@a2@'
    'dec_ttl(1,2),output:@a2@'
    'dec_ttl,dec_ttl,output:@a2@'
    'controller(reason=no_match,max_len=64,id=5)'
    'controller(userdata=01.02.03.ff,pause,meter_id=4),resubmit(,93)'
    'controller(userdata=00.00.00.07,max_len=128),output:@a2@'
    'enqueue:@a2@:1'
    'set_queue:2,output:@a2@,pop_queue,output:@a3@'
    'bundle(eth_src,0,active_backup,ofport,members:@b-down@,@a3@,@a2@)'
    'bundle(symmetric_l4,7,hrw,ofport,members:@a2@,@a3@,@a4@,@b-down@)'
    'bundle_load(nw_src,1,hrw,ofport,NXM_NX_REG1[0..15],members:@a2@,@a3@),output:NXM_NX_REG1[0..15]'
    'multipath(symmetric_l4,50,modulo_n,4,0,NXM_NX_REG2[0..7]),multipath(eth_src,1,hash_threshold,8,0,NXM_NX_REG2[8..15]),resubmit(,94)'
    'multipath(symmetric_l3l4,3,hrw,5,0,NXM_NX_REG2[0..7]),multipath(symmetric_l3l4+udp,3,iter_hash,3,0,NXM_NX_REG2[8..15]),resubmit(,94)'
    'clone(mod_vlan_vid:5,output:@a3@,clone(mod_nw_ttl:3,output:@a4@),output:@b1@),output:@a2@'
    'check_pkt_larger(1500)->NXM_NX_REG0[0],resubmit(,95)'
    'sample(probability=32768,collector_set_id=1,obs_domain_id=11,obs_point_id=22,sampling_port=@a2@),output:@a2@'
    'clone(sample(probability=65535,collector_set_id=2,obs_domain_id=1,obs_point_id=2),output:@a3@),sample(probability=1,collector_set_id=1,obs_domain_id=3,obs_point_id=4,egress),output:@a2@'
    'push_vlan:0x8100,set_field:4196->vlan_vid,push_vlan:0x88a8,set_field:4296->vlan_vid,output:@a2@'
    'mod_vlan_vid:6,mod_vlan_pcp:3,output:@a2@,strip_vlan,output:@a3@'
    'push_mpls:0x8847,set_field:100->mpls_label,set_field:5->mpls_tc,output:@a2@'
    'push_mpls:0x8847,set_field:100->mpls_label,push_mpls:0x8847,set_field:200->mpls_label,dec_mpls_ttl,output:@a2@,pop_mpls:0x8847,output:@a3@'
    'encap(nsh(md_type=1)),set_field:0x1234->nsh_spi,set_field:4->nsh_si,set_field:0x11223344->nsh_c1,encap(ethernet),set_field:02:00:00:00:00:99->eth_dst,output:@a2@'
    'encap(nsh(md_type=2,tlv(0x1000,10,0x12345678))),encap(ethernet),output:@a2@'
    'set_field:0x77->tun_id,set_field:10.20.0.9->tun_dst,set_field:0xabcd->tun_metadata0,set_field:0x1122->tun_metadata7,output:@gnv-flow@'
    'set_field:0x78->tun_id,set_field:fd00::9->tun_ipv6_dst,set_field:oam->tun_flags,move:NXM_OF_IP_SRC[]->NXM_NX_TUN_METADATA0[0..31],output:@gnv-flow@,delete_field:tun_metadata0,output:@gnv-flow@'
    'set_field:0x55->pkt_mark,output:@a2@,load:0->NXM_NX_PKT_MARK[],output:@a3@'
    'push:NXM_NX_REG0[],push:NXM_OF_IP_SRC[],pop:NXM_OF_IP_DST[],pop:NXM_NX_REG3[],output:@a2@'
    'move:NXM_OF_ETH_SRC[0..31]->NXM_NX_XXREG0[32..63],move:NXM_NX_REG1[]->NXM_NX_REG4[],set_field:0x1/0xf->xxreg1,set_field:0x8->xreg3,resubmit(,96)'
    'output(port=@a2@,max_len=64),output(port=@a3@,max_len=200),output:@a4@'
    'in_port,LOCAL,output:@a2@'
    'fin_timeout(idle_timeout=3,hard_timeout=7),output:@a2@'
    'note:00.11.22.33.44.55.66,output:@a2@,exit,output:@a3@'
    'resubmit(@a4@,97),resubmit(,97)'
    'meter:1,output:@a2@'
    'meter:2,output:@a2@'
    'meter:5,set_field:1->reg5,output:@a3@'
    'meter:700,set_field:3->reg5,resubmit(,94)'
    'write_actions(set_field:10.1.2.3->ip_dst,output:@a2@),write_metadata:0x12345678/0xffffffff,goto_table:98'
    'clear_actions,write_actions(group:6,push_vlan:0x8100,set_field:4099->vlan_vid,output:@a3@),goto_table:98'
    'ct(table=80)'
    'ct(zone=5,table=81,nat)'
    'ct(commit,zone=5,nat(src=10.5.0.1-10.5.0.9:1000-2000,random),exec(set_field:0x7->ct_mark,set_field:0x123->ct_label)),output:@a2@'
    'ct(commit,zone=5,table=82,nat(dst=10.6.0.1,persistent))'
    'ct(commit,zone=6,alg=ftp,table=82)'
    'ct(commit,force,zone=6,exec(move:NXM_NX_REG0[]->NXM_NX_CT_MARK[],set_field:0x8/0xf->ct_label)),output:@a3@'
    'set_field:0x1f->reg5,ct(table=83,zone=NXM_NX_REG5[0..15])'
    'ct(commit,zone=9,nat(src=10.9.0.1)),ct(table=84,zone=10)'
    'ct_clear,resubmit(,80)'
    'ct(table=86,zone=11)'
    'to-next'
    'push_vlan:0x8100,set_field:4107->vlan_vid,output:@to-next@,output:@a2@'
    'learn(table=60,hard_timeout=300,priority=7,cookie=0x60,NXM_OF_VLAN_TCI[0..11],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],load:NXM_NX_REG0[0..15]->NXM_NX_REG1[0..15],load:0x5->NXM_NX_REG2[],output:NXM_OF_IN_PORT[]),resubmit(,60),output:@a2@'
    'learn(table=61,idle_timeout=60,fin_idle_timeout=2,fin_hard_timeout=4,delete_learned,send_flow_rem,cookie=0x61,eth_type=0x800,nw_proto=6,NXM_OF_IP_SRC[]=NXM_OF_IP_DST[],NXM_OF_IP_DST[]=NXM_OF_IP_SRC[],NXM_OF_TCP_SRC[]=NXM_OF_TCP_DST[],NXM_OF_TCP_DST[]=NXM_OF_TCP_SRC[],load:0x1->NXM_NX_REG10[7]),resubmit(,61),output:@a3@'
    'learn(table=62,limit=2,result_dst=NXM_NX_REG9[0],priority=3,eth_type=0x800,NXM_OF_IP_SRC[]),resubmit(,62),output:@a4@'
    'resubmit(,60),resubmit(,61),resubmit(,62),resubmit(,63)'
    'resubmit(,70)'
    'group:1'
    'group:2'
    'group:3'
    'group:4'
    'group:5'
    'group:6'
    'group:7'
    'group:8'
    'group:9'
    'group:10'
    'group:11'
    'group:12,output:@a2@'
    'group:13'
    'group:4294967040'
    'write_actions(group:9),goto_table:98'
    'FLOOD'
    'ALL'
    'NORMAL'
    'resubmit(,99)'
    'group:3,ct(table=80,zone=3)'
)

pipeline_flows() {
    local n=1000 actions
    for actions in "${ACTIONS[@]}"; do
        [[ $actions != to-next ]] || actions=output:@to-next@
        n=$((n + 1))
        printf 'cookie=0x%x,table=0,priority=50,tcp,in_port=@a1@,tp_dst=%d,actions=%s\n' $n $n "$actions"
    done
    cat <<'FLOWS'
table=0,priority=40,udp,in_port=@a1@,actions=ct(table=80,zone=2)
table=0,priority=45,udp,in_port=@a1@,tp_dst=69,actions=ct(commit,zone=6,alg=tftp,table=82)
table=0,priority=40,arp,in_port=@a1@,arp_op=1,actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],mod_dl_src:02:00:00:00:00:01,set_field:2->arp_op,move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],set_field:02:00:00:00:00:01->arp_sha,push:NXM_OF_ARP_TPA[],move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],pop:NXM_OF_ARP_SPA[],IN_PORT
table=0,priority=40,tcp6,in_port=@a1@,actions=ct(commit,zone=4,table=82,nat(src=[fd00:4::1]-[fd00:4::ff]:3000-4000,hash))
table=0,priority=40,icmp6,in_port=@a1@,icmp_type=135,actions=set_field:136->icmpv6_type,set_field:fd00::77->nd_target,set_field:02:00:00:00:00:77->nd_sll,IN_PORT
table=0,priority=40,mpls,in_port=@a1@,mpls_bos=1,actions=pop_mpls:0x0800,dec_ttl,output:@a2@
table=0,priority=40,mpls,in_port=@a1@,mpls_bos=0,actions=dec_mpls_ttl,set_field:77->mpls_label,output:@a3@
table=0,priority=40,dl_type=0x894f,in_port=@a1@,actions=decap(),decap(),resubmit(,88)
table=0,priority=40,in_port=@gnv-flow@,tun_metadata0=0xabcd,actions=move:NXM_NX_TUN_METADATA7[0..31]->NXM_NX_REG6[],move:NXM_NX_TUN_IPV4_SRC[]->NXM_NX_TUN_IPV4_DST[],set_field:0x99->tun_id,IN_PORT,output:@a2@
table=0,priority=39,in_port=@gnv-flow@,tun_metadata0,tun_flags=+oam,actions=drop
table=0,priority=38,in_port=@gnv-flow@,tun_id=0x50/0xf0,actions=output:@a3@
table=0,priority=30,ip,in_port=@to-next@,actions=dec_ttl,output:@a5@
table=0,priority=20,in_port=@b2@,dl_vlan=20,idle_timeout=600,send_flow_rem,actions=strip_vlan,output:@a2@
table=0,priority=20,in_port=@b2@,vlan_tci=0x1000/0x1000,hard_timeout=36000,importance=7,actions=output:@a3@
table=0,priority=20,in_port=@b2@,dl_vlan=0xffff,check_overlap,actions=output:@a4@
table=0,priority=0,actions=drop
table=60,priority=0,actions=set_field:0x60->reg3
table=61,priority=0,actions=set_field:0x61->reg3
table=62,priority=0,actions=set_field:0x62->reg3
table=63,priority=5,reg1=0x2,actions=output:@a2@
table=63,priority=0,actions=output:@b1@
table=80,priority=10,ct_state=+trk+new,ip,actions=ct(commit,zone=NXM_NX_CT_ZONE[]),output:@a2@
table=80,priority=10,ct_state=+trk+est-rel,ip,actions=output:@a3@
table=80,priority=10,ct_state=+trk+inv,actions=drop
table=80,priority=10,ct_state=+trk+rel,ip,actions=output:@a4@
table=80,priority=5,ct_state=-trk,actions=output:@b1@
table=81,priority=10,ct_state=+trk+est+rpl,ip,actions=output:@a4@
table=81,priority=10,ct_state=+snat,ip,actions=output:@a2@
table=81,priority=10,ct_state=+dnat,ip,actions=output:@a3@
table=81,priority=9,ct_state=+new,tcp,ct_nw_src=10.0.0.0/24,actions=ct(commit,zone=5,nat(src=10.5.0.1)),output:@b1@
table=81,priority=1,actions=drop
table=82,priority=10,ct_mark=0x7,actions=output:@a2@
table=82,priority=5,ip,ct_zone=5,ct_state=+dnat,actions=ct(zone=15,table=80)
table=82,priority=4,ip,actions=output:@a3@
table=82,priority=4,ipv6,actions=output:@a4@
table=83,priority=10,ct_state=+trk+est,ct_mark=0x1/0x1,actions=output:@a2@
table=83,priority=10,ct_state=+trk,ct_label=0x123/0xfff,actions=output:@a4@
table=83,priority=1,actions=output:@a3@
table=84,priority=10,ct_state=+new,ip,actions=ct(commit,zone=10,nat(dst=10.10.0.1)),resubmit(,80)
table=84,priority=5,ip,actions=output:@a4@
table=85,priority=10,ip,ct_state=-trk,actions=output:@a2@
table=85,priority=9,tcp,tp_src=4000,actions=output:@a4@
table=85,priority=5,actions=output:@a3@
table=86,priority=5,tcp,ct_state=+trk-inv,actions=resubmit(,85,ct)
table=86,priority=1,actions=output:@b1@
table=88,priority=5,actions=output:@a2@
table=90,priority=1,ip,actions=mod_nw_ttl:5,output:@b1@
table=91,priority=1,ip,nw_dst=10.80.0.0/16,actions=output:@b1@
table=91,priority=0,actions=output:@b2@
table=92,priority=1,reg13=0xd,actions=output:@a4@
table=93,priority=1,actions=output:@b1@
table=94,priority=3,reg2=0x100/0xff00,actions=output:@a2@
table=94,priority=2,reg2=0x1/0xff,actions=output:@a3@
table=94,priority=1,actions=output:@a4@
table=95,priority=2,reg0=0x1/0x1,actions=controller(max_len=256)
table=95,priority=1,actions=output:@a2@
table=96,priority=2,xreg3=0x8,actions=output:@a2@
table=96,priority=1,actions=output:@a3@
table=97,priority=2,in_port=@a4@,actions=output:@a2@
table=97,priority=1,in_port=@a1@,actions=output:@a3@
table=98,priority=2,metadata=0x12345678,actions=write_actions(set_field:02:00:00:00:00:98->eth_dst)
table=98,priority=1,actions=write_metadata:0x1
FLOWS
    # Three dimensions, two conjunctions that share one of them, and a flow with
    # a higher priority.
    cat <<'FLOWS'
table=70,priority=20,conj_id=100,ip,actions=set_field:0x64->reg8,output:@a2@
table=70,priority=20,conj_id=200,ip,actions=set_field:0xc8->reg8,output:@a3@
table=70,priority=20,ip,nw_src=10.0.0.0/24,actions=conjunction(100,1/3),conjunction(200,1/2)
table=70,priority=20,ip,nw_src=10.0.5.0/24,actions=conjunction(100,1/3)
table=70,priority=20,ip,nw_dst=10.0.1.0/24,actions=conjunction(100,2/3)
table=70,priority=20,ip,nw_dst=10.0.2.0/24,actions=conjunction(100,2/3),conjunction(200,2/2)
table=70,priority=20,ip,nw_dst=10.0.3.9,actions=conjunction(100,2/3)
table=70,priority=20,tcp,tp_src=0x1000/0xf000,actions=conjunction(100,3/3)
table=70,priority=20,tcp,tp_src=80,actions=conjunction(100,3/3)
table=70,priority=30,tcp,nw_dst=10.0.1.66,actions=drop
table=70,priority=1,actions=output:@b1@
FLOWS
    # One branch for each bit of reg15, sixteen levels deep.
    local bit
    for bit in {0..15}; do
        printf 'table=%d,priority=2,reg15=0x%x/0x%x,actions=load:0x%x->NXM_NX_REG14[%d],resubmit(,%d)\n' \
            $((99 + bit)) $((1 << bit)) $((1 << bit)) $((bit % 2)) "$bit" $((100 + bit))
        printf 'table=%d,priority=1,actions=load:1->NXM_NX_REG15[%d],resubmit(,%d)\n' \
            $((99 + bit)) $(((bit + 1) % 16)) $((100 + bit))
    done
    printf 'table=115,actions=output:@a2@\n'
}

next_flows() {
    cat <<'FLOWS'
table=0,priority=20,in_port=@to-pipe@,dl_vlan=11,actions=meter:9,strip_vlan,group:1
table=0,priority=10,ip,in_port=@to-pipe@,actions=dec_ttl,in_port
table=0,priority=5,tcp,in_port=@c1@,actions=ct(table=1,zone=1)
table=0,priority=0,actions=NORMAL
table=1,priority=1,ip,ct_state=+new,actions=ct(commit,zone=1),output:@to-pipe@
table=1,priority=1,ct_state=+est,actions=output:@c2@
FLOWS
}

TCP='tcp,dl_src=02:00:00:00:00:a1,dl_dst=02:00:00:00:00:a2'

topo_finish() {
    local n
    meters
    groups
    pipeline_flows | add_flows br-pipe OpenFlow15
    next_flows | add_flows br-next OpenFlow13
    ovs-appctl netdev-dummy/set-admin-state b-down down >/dev/null
    # Packets for the learn actions: from two hosts, of two connections, and
    # from two sources more than the limit allows.
    for n in 1 2 3; do
        hear br-pipe "in_port=@a1@,tcp,dl_src=02:00:00:00:00:b$n,dl_dst=02:00:00:00:00:a2,nw_src=10.0.0.$n,nw_dst=10.0.1.$n,nw_ttl=64,tp_src=400$n,tp_dst=$(port_of_action 'learn(table=60')"
        hear br-pipe "in_port=@a1@,tcp,dl_src=02:00:00:00:00:b$n,dl_dst=02:00:00:00:00:a2,nw_src=10.0.0.$n,nw_dst=10.0.1.$n,nw_ttl=64,tp_src=400$n,tp_dst=$(port_of_action 'learn(table=61')"
        hear br-pipe "in_port=@a1@,tcp,dl_src=02:00:00:00:00:b$n,dl_dst=02:00:00:00:00:a2,nw_src=10.0.0.$n,nw_dst=10.0.1.$n,nw_ttl=64,tp_src=400$n,tp_dst=$(port_of_action 'learn(table=62')"
    done
    hear br-next "in_port=@c2@,arp,dl_src=02:00:00:00:00:c2,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1"
}

port_of_action() {
    local n
    for n in "${!ACTIONS[@]}"; do
        if [[ ${ACTIONS[n]} == "$1"* ]]; then
            printf '%d' $((1001 + n))
            return
        fi
    done
    die "no such action: $1"
}

# The connection states (--ct-next) for the traces.
ct_options() {
    case $1 in
    *nat\)*) printf -- '--ct-next trk,est,dnat --ct-next trk,est' ;;
    *ct\(*force* | *alg=ftp* | *table=83*) printf -- '--ct-next trk,est' ;;
    *) ;;
    esac
}

topo_packets() {
    local n=1000 actions ip=nw_src=10.0.0.1,nw_dst=10.0.1.2,nw_ttl=64 t="in_port=@a1@,$TCP" port
    local new='--ct-next trk,new' est='--ct-next trk,est'
    for actions in "${ACTIONS[@]}"; do
        n=$((n + 1))
        printf 'br-pipe|%s|%s,%s,tp_src=4000,tp_dst=%d\n' "$(ct_options "$actions")" "$t" "$ip" $n
    done
    for n in 1 2 3 4; do
        for port in group:3 group:4 group:10 bundle\(symm 'bundle_load' 'multipath(symmetric_l4'; do
            printf 'br-pipe||%s,nw_src=10.0.0.%d,nw_dst=10.0.2.%d,nw_ttl=64,tp_src=500%d,tp_dst=%s\n' \
                "$t" "$n" "$n" "$n" "$(port_of_action "$port")"
        done
    done
    port=$(port_of_action 'resubmit(,70)')
    cat <<PACKETS
# conjunctions
br-pipe||$t,nw_src=10.0.0.1,nw_dst=10.0.1.9,nw_ttl=64,tp_src=80,tp_dst=$port
br-pipe||$t,nw_src=10.0.0.1,nw_dst=10.0.1.66,nw_ttl=64,tp_src=80,tp_dst=$port
br-pipe||$t,nw_src=10.0.0.1,nw_dst=10.0.2.9,nw_ttl=64,tp_src=81,tp_dst=$port
br-pipe||$t,nw_src=10.0.5.1,nw_dst=10.0.3.9,nw_ttl=64,tp_src=4097,tp_dst=$port
br-pipe||$t,nw_src=10.0.5.1,nw_dst=10.0.3.8,nw_ttl=64,tp_src=4097,tp_dst=$port
# connections: new, established, reply, related, invalid, NAT both ways
br-pipe|$new|$t,$ip,tp_src=4000,tp_dst=$(port_of_action 'ct(table=80)')
br-pipe|--ct-next trk,inv|$t,$ip,tp_src=4000,tp_dst=$(port_of_action 'ct(table=80)')
br-pipe|--ct-next trk,rel,new|$t,$ip,tp_src=4000,tp_dst=$(port_of_action 'ct(table=80)')
br-pipe|--ct-next trk,est,rpl|$t,$ip,tp_src=4000,tp_dst=$(port_of_action 'ct(zone=5,table=81')
br-pipe|--ct-next trk,est,snat|$t,$ip,tp_src=4000,tp_dst=$(port_of_action 'ct(zone=5,table=81')
br-pipe|$new|$t,$ip,tp_src=4000,tp_dst=$(port_of_action 'ct(zone=5,table=81')
br-pipe|--ct-next trk,new,dnat --ct-next trk,est|$t,$ip,tp_src=4000,tp_dst=$(port_of_action 'ct(commit,zone=5,table=82')
br-pipe|$est|in_port=@a1@,udp,$ip,udp_src=1,udp_dst=2
br-pipe|$new|in_port=@a1@,udp,$ip,udp_src=1,udp_dst=69
br-pipe|--ct-next trk,inv|$t,$ip,tp_src=4000,tp_dst=$(port_of_action 'ct(table=86')
br-pipe|$new|in_port=@a1@,udp,$ip,udp_src=1,udp_dst=2
br-pipe|$new|in_port=@a1@,tcp6,ipv6_src=fd00::1,ipv6_dst=fd00::2,nw_ttl=64,tp_src=1,tp_dst=2
br-pipe||$t,$ip,ct_state=trk|est,ct_mark=1,tp_src=4000,tp_dst=$(port_of_action 'ct_clear')
# learned: the way back, known connections
br-pipe||in_port=@a1@,tcp,dl_src=02:00:00:00:00:a1,dl_dst=02:00:00:00:00:b2,nw_src=10.0.1.2,nw_dst=10.0.0.2,nw_ttl=64,tp_src=$(port_of_action 'learn(table=61'),tp_dst=$(port_of_action 'resubmit(,60)')
br-pipe||in_port=@a1@,tcp,dl_src=02:00:00:00:00:b1,dl_dst=02:00:00:00:00:b3,nw_src=10.0.0.3,nw_dst=10.0.1.3,nw_ttl=64,tp_src=4003,tp_dst=$(port_of_action 'resubmit(,60)')
br-pipe||in_port=@a1@,tcp,dl_src=02:00:00:00:00:b9,dl_dst=02:00:00:00:00:b1,nw_src=10.0.0.9,nw_dst=10.0.1.9,nw_ttl=64,tp_src=4009,tp_dst=$(port_of_action 'learn(table=62')
# other protocols
br-pipe||in_port=@a1@,arp,dl_src=02:00:00:00:00:a1,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_sha=02:00:00:00:00:a1
br-pipe||in_port=@a1@,icmp6,dl_src=02:00:00:00:00:a1,dl_dst=33:33:ff:00:00:77,ipv6_src=fd00::1,ipv6_dst=ff02::1:ff00:77,icmpv6_type=135,icmpv6_code=0,nd_target=fd00::77,nd_sll=02:00:00:00:00:a1,nw_ttl=255
br-pipe||in_port=@a1@,mpls,mpls_label=5,mpls_tc=1,mpls_ttl=9,mpls_bos=1
br-pipe||in_port=@a1@,mpls,mpls_label=5,mpls_tc=1,mpls_ttl=9,mpls_bos=0
br-pipe||in_port=@a1@,mpls,mpls_label=5,mpls_tc=1,mpls_ttl=1,mpls_bos=0
br-pipe||in_port=@a1@,dl_type=0x894f,nsh_np=3,nsh_mdtype=1,nsh_spi=0x1234,nsh_si=4,nsh_c1=1
br-pipe||in_port=@a1@,$TCP,nw_src=10.0.0.1,nw_dst=10.0.1.2,nw_ttl=1,tp_src=4000,tp_dst=$(port_of_action 'dec_ttl(1,2)')
br-pipe||in_port=@a1@,$TCP,nw_src=10.0.0.1,nw_dst=10.0.1.2,nw_ttl=2,tp_src=4000,tp_dst=$(port_of_action 'dec_ttl,dec_ttl')
br-pipe||in_port=@gnv-flow@,tun_id=0x5,tun_src=10.20.0.9,tun_dst=10.20.0.11,tun_metadata0=0xabcd,tun_metadata7=0x55,$TCP,$ip,tp_src=1,tp_dst=2
br-pipe||in_port=@gnv-flow@,tun_id=0x5,tun_src=10.20.0.9,tun_dst=10.20.0.11,tun_metadata0=0x1,tun_flags=oam,$TCP,$ip,tp_src=1,tp_dst=2
br-pipe||in_port=@gnv-flow@,tun_id=0x5a,tun_src=10.20.0.9,tun_dst=10.20.0.11,$TCP,$ip,tp_src=1,tp_dst=2
br-pipe||in_port=@b2@,dl_vlan=20,$TCP,$ip,tp_src=1,tp_dst=2
br-pipe||in_port=@b2@,dl_vlan=21,$TCP,$ip,tp_src=1,tp_dst=2
br-pipe||in_port=@b2@,$TCP,$ip,tp_src=1,tp_dst=2
br-pipe||in_port=LOCAL,$TCP,$ip,tp_src=1,tp_dst=2
# the next bridge
br-next|$new|in_port=@c1@,$TCP,$ip,tp_src=1,tp_dst=2
br-next|$est|in_port=@c1@,$TCP,$ip,tp_src=1,tp_dst=2
br-next||in_port=@c1@,icmp,dl_dst=02:00:00:00:00:c2,$ip,icmp_type=8,icmp_code=0
PACKETS
}
