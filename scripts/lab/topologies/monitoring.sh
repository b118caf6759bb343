# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by lib.sh
# A node that is monitored and controlled: in-band controllers with their hidden
# flows, a bridge in fail-open whose controller is gone, sFlow, IPFIX and
# NetFlow on bridges and by flow, and ports with CFM, one of them with a fault.
#
# Differences from a real node: time is warped until ovs-vswitchd gives up the
# controllers; ports get the interface indexes that a kernel gives its devices,
# which sFlow contains.

TOPO_SUMMARY='in-band controllers, fail-open, sFlow, IPFIX, NetFlow, sample() by flow, CFM with a fault'
TOPO_HOST=watched-05
TOPO_SYSTEM_ID=d87e1b33-05ac-4f92-b6cb-1f2047ae5505
TOPO_OVN=no
TOPO_OVS_SETTINGS=(other_config:vlan-limit=0)

INDEX=10
# indexed INTERFACE: gives the interface the next interface index.
indexed() {
    INDEX=$((INDEX + 1))
    ovs-vsctl set Interface "$1" options:ifindex=$INDEX
}

topo_node() {
    local port
    start_partner
    partner ovs-vsctl add-br sw-cfm -- add-port sw-cfm cfm-ok -- set Interface cfm-ok "$(far_end cfm-ok)" \
        cfm_mpid=2 other_config:cfm_interval=100 other_config:cfm_extended=true \
        -- add-port sw-cfm cfm-odd -- set Interface cfm-odd "$(far_end cfm-odd)" cfm_mpid=7 \
        other_config:cfm_interval=100 other_config:cfm_opstate=down other_config:cfm_extended=true
    in_band_bridge
    fail_open_bridges
    sflow_bridge
    ipfix_bridge
    sample_bridge
    for port in br-inband br-open br-open2 br-sflow br-ipfix br-sample uplink0 uplink1 vm1 vm2 o1 o2 p1 p2 \
        s1 s2 s3 i1 i2 i3 m1 m2; do
        indexed "$port"
    done
    # sFlow uses the numbers that the ports have when sFlow or the port is
    # added.
    ovs-vsctl --id=@s create sFlow agent=br-sflow targets='"127.0.0.1:6343","127.0.0.1:6344"' header=96 \
        sampling=400 polling=20 -- set Bridge br-sflow sflow=@s >/dev/null
}

in_band_bridge() {
    ovs-vsctl add-br br-inband -- set Bridge br-inband datapath_type=system fail_mode=secure \
        protocols=OpenFlow10,OpenFlow13 other_config:hwaddr='"52:54:00:e0:00:01"' other_config:in-band-queue=3
    ovs-vsctl add-port br-inband uplink0
    ovs-vsctl add-port br-inband vm1
    ovs-vsctl add-port br-inband uplink1 tag=30
    ovs-appctl netdev-dummy/ip4addr br-inband 203.0.113.5/24 >/dev/null
    ovs-vsctl set-controller br-inband tcp:203.0.113.66:6653 tcp:192.0.2.67:6633 \
        -- set-manager ptcp:6640:127.0.0.1
    ovs-vsctl add-port br-inband vm2
}

# Neither controller exists: one bridge is out-of-band, one in-band.
fail_open_bridges() {
    ovs-vsctl add-br br-open -- set Bridge br-open datapath_type=system fail_mode=standalone \
        protocols=OpenFlow10,OpenFlow13,OpenFlow15 other_config:hwaddr='"52:54:00:e0:00:02"' \
        -- set-controller br-open tcp:127.0.0.1:6699 \
        -- set Controller br-open connection_mode=out-of-band max_backoff=1000 inactivity_probe=5000
    ovs-vsctl add-port br-open o1 tag=5
    ovs-vsctl add-port br-open o2 trunks=5,6
    ovs-vsctl add-br br-open2 -- set Bridge br-open2 datapath_type=system \
        protocols=OpenFlow10,OpenFlow13 other_config:hwaddr='"52:54:00:e0:00:03"' \
        -- set-controller br-open2 tcp:192.0.2.68:6653
    ovs-vsctl add-port br-open2 p1
    ovs-vsctl add-port br-open2 p2
}

sflow_bridge() {
    ovs-vsctl add-br br-sflow -- set Bridge br-sflow datapath_type=system protocols=OpenFlow10,OpenFlow13 \
        other_config:hwaddr='"52:54:00:e0:00:04"'
    ovs-appctl netdev-dummy/ip4addr br-sflow 198.51.100.5/24 >/dev/null
    ovs-vsctl add-port br-sflow s1 tag=40
    ovs-vsctl add-port br-sflow s2 tag=40
    ovs-vsctl add-port br-sflow s3 trunks=40,41
}

# IPFIX and NetFlow on one bridge, and a tunnel whose traffic is sampled too.
ipfix_bridge() {
    ovs-vsctl add-br br-ipfix -- set Bridge br-ipfix datapath_type=system protocols=OpenFlow10,OpenFlow13 \
        other_config:hwaddr='"52:54:00:e0:00:05"'
    ovs-vsctl --id=@x create IPFIX targets='"127.0.0.1:4739"' obs_domain_id=123 obs_point_id=456 \
        sampling=64 cache_active_timeout=60 cache_max_flows=13 other_config:enable-tunnel-sampling=true \
        other_config:enable-input-sampling=true -- set Bridge br-ipfix ipfix=@x >/dev/null
    ovs-vsctl --id=@n create NetFlow targets='"127.0.0.1:2055"' active_timeout=60 engine_id=7 engine_type=9 \
        add_id_to_interface=true -- set Bridge br-ipfix netflow=@n >/dev/null
    ovs-vsctl add-port br-ipfix i1 tag=50
    ovs-vsctl add-port br-ipfix vx0 tag=50 -- set Interface vx0 type=vxlan options:remote_ip=10.20.0.9 options:key=50
    ovs-vsctl add-port br-ipfix i2 tag=50
    ovs-vsctl add-port br-ipfix i3 tag=51
}

# Samples by flow, for two sets of collectors; NetFlow alone; CFM.
sample_bridge() {
    ovs-vsctl add-br br-sample -- set Bridge br-sample datapath_type=system fail_mode=secure \
        protocols=OpenFlow10,OpenFlow13,OpenFlow15 other_config:hwaddr='"52:54:00:e0:00:06"'
    ovs-vsctl --id=@b get Bridge br-sample -- --id=@x create IPFIX targets='"127.0.0.1:4740"' \
        -- create Flow_Sample_Collector_Set id=1 bridge=@b ipfix=@x >/dev/null
    ovs-vsctl --id=@b get Bridge br-sample -- --id=@x create IPFIX targets='"127.0.0.1:4741","127.0.0.1:4742"' \
        cache_max_flows=1 other_config:virtual_obs_id=lab -- create Flow_Sample_Collector_Set id=5 bridge=@b ipfix=@x >/dev/null
    ovs-vsctl --id=@n create NetFlow targets='"127.0.0.1:2056"' -- set Bridge br-sample netflow=@n >/dev/null
    ovs-vsctl add-port br-sample m1
    ovs-vsctl add-port br-sample cfm-ok -- set Interface cfm-ok "$(near_end cfm-ok)" cfm_mpid=1 \
        other_config:cfm_interval=100 other_config:cfm_extended=true
    ovs-vsctl add-port br-sample cfm-dead -- set Interface cfm-dead cfm_mpid=3 other_config:cfm_interval=100
    ovs-vsctl add-port br-sample cfm-odd -- set Interface cfm-odd "$(near_end cfm-odd)" cfm_mpid=8 \
        other_config:cfm_interval=100 other_config:cfm_extended=true
    ovs-vsctl add-port br-sample m2
}

has_failed_open() { ovs-appctl bridge/dump-flows "$1" | grep -q 'priority=15790320'; }

has_in_band() { [[ $(ovs-appctl bridge/dump-flows br-inband | grep -cE 'priority=1800(0[5-9]|1[0-2])') -ge 6 ]]; }

is_checked() {
    [[ $(ovs-vsctl get Interface cfm-ok cfm_fault) == false &&
        $(ovs-vsctl get Interface cfm-dead cfm_fault) == true &&
        $(ovs-vsctl get Interface cfm-odd cfm_remote_opstate) == down ]]
}

topo_flows() {
    add_flows br-inband OpenFlow13 <<'FLOWS'
table=0,priority=65535,dl_type=0x88cc,actions=CONTROLLER:65535
table=0,priority=100,in_port=@uplink0@,actions=output:@vm1@,output:@vm2@
table=0,priority=100,in_port=@vm1@,actions=NORMAL
table=0,priority=0,actions=drop
FLOWS
    # Flows that a script adds while the controller is away have no effect.
    add_flows br-open OpenFlow13 <<'FLOWS'
table=0,priority=65535,tcp,actions=drop
table=0,priority=100,ip,in_port=@o1@,actions=mod_nw_tos:32,output:@o2@
FLOWS
    numbered_ports <<'GROUPS' | ovs-ofctl -O OpenFlow15 add-groups br-sample -
group_id=1,type=ff,bucket=bucket_id:1,watch_port:@cfm-dead@,actions=output:@cfm-dead@,bucket=bucket_id:2,watch_port:@cfm-ok@,actions=output:@cfm-ok@
group_id=2,type=ff,bucket=bucket_id:1,watch_port:@cfm-odd@,actions=output:@cfm-odd@,bucket=bucket_id:2,watch_port:@m2@,actions=output:@m2@
group_id=3,type=select,selection_method=dp_hash,bucket=bucket_id:1,weight:1,watch_port:@cfm-ok@,actions=output:@cfm-ok@,bucket=bucket_id:2,weight:1,watch_port:@cfm-dead@,actions=output:@cfm-dead@
GROUPS
    add_flows br-sample OpenFlow15 <<'FLOWS'
table=0,priority=50,tcp,tp_dst=1,actions=sample(probability=65535,collector_set_id=1,obs_domain_id=1,obs_point_id=2),output:@m2@
table=0,priority=50,tcp,tp_dst=2,actions=sample(probability=655,collector_set_id=5,obs_domain_id=9,obs_point_id=7,sampling_port=@m2@,ingress),output:@m2@
table=0,priority=50,tcp,tp_dst=3,actions=sample(probability=32768,collector_set_id=5,obs_domain_id=9,obs_point_id=8,sampling_port=@m2@,egress),output:@m2@
table=0,priority=50,tcp,tp_dst=4,actions=sample(probability=32768,collector_set_id=99,obs_domain_id=9,obs_point_id=8),output:@m2@
table=0,priority=50,tcp,tp_dst=5,actions=mod_vlan_vid:9,sample(probability=100,collector_set_id=1,obs_domain_id=3,obs_point_id=4,sampling_port=@m2@),output:@m2@,strip_vlan,output:@cfm-ok@
table=0,priority=50,tcp,tp_dst=6,actions=group:1
table=0,priority=50,tcp,tp_dst=7,actions=group:2
table=0,priority=50,tcp,tp_dst=8,actions=group:3
table=0,priority=50,tcp,tp_dst=9,actions=bundle(eth_src,0,active_backup,ofport,members:@cfm-dead@,@cfm-odd@,@cfm-ok@)
table=0,priority=50,tcp,tp_dst=10,actions=bundle(eth_src,0,hrw,ofport,members:@cfm-dead@,@cfm-ok@)
table=0,priority=50,tcp,tp_dst=11,actions=output:@cfm-dead@,output:@cfm-ok@
table=0,priority=10,dl_vlan=9,actions=sample(probability=1000,collector_set_id=1,obs_domain_id=0,obs_point_id=0),NORMAL
table=0,priority=0,actions=NORMAL
FLOWS
}

topo_finish() {
    local arp='arp,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1'
    # ovs-vswitchd gives up a controller after at least three backoffs.
    ovs-appctl time/warp 30000 1000 >/dev/null
    wait_for "br-open to fail open" 20 has_failed_open br-open
    wait_for "br-open2 to fail open" 20 has_failed_open br-open2
    wait_for "the in-band flows" 10 has_in_band
    topo_flows
    wait_for "CFM to find its fault" 10 is_checked
    hear br-inband "in_port=@vm1@,$arp,dl_src=02:e1:00:00:00:01,arp_spa=203.0.113.1,arp_tpa=203.0.113.9"
    hear br-open "in_port=@o1@,$arp,dl_src=02:e2:00:00:00:01"
    hear br-open2 "in_port=@p2@,$arp,dl_src=02:e3:00:00:00:02"
    hear br-sflow "in_port=@s1@,$arp,dl_src=02:e4:00:00:00:01"
    hear br-sflow "in_port=@s3@,dl_vlan=40,$arp,dl_src=02:e4:00:00:00:03"
    hear br-ipfix "in_port=@i1@,$arp,dl_src=02:e5:00:00:00:01"
    hear br-ipfix "in_port=@vx0@,tun_src=10.20.0.9,tun_dst=10.20.0.5,tun_id=50,$arp,dl_src=02:e5:00:00:00:09"
    hear br-sample "in_port=@m1@,$arp,dl_src=02:e6:00:00:00:01"
}

topo_packets() {
    local all=dl_dst=ff:ff:ff:ff:ff:ff ip=nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64 n
    local mine=dl_src=52:54:00:e0:00:01 gw=02:e1:00:00:00:fe
    cat <<PACKETS
# in-band: traffic that reaches the controllers independently of the flows
br-inband||in_port=LOCAL,arp,$all,$mine,arp_op=1,arp_spa=203.0.113.5,arp_tpa=203.0.113.66
br-inband||in_port=LOCAL,tcp,dl_dst=$gw,$mine,nw_src=203.0.113.5,nw_dst=203.0.113.66,nw_ttl=64,tp_src=40000,tp_dst=6653
br-inband||in_port=LOCAL,tcp,dl_dst=$gw,$mine,nw_src=203.0.113.5,nw_dst=192.0.2.67,nw_ttl=64,tp_src=40000,tp_dst=6633
br-inband||in_port=LOCAL,tcp,dl_dst=$gw,$mine,nw_src=203.0.113.5,nw_dst=203.0.113.66,nw_ttl=64,tp_src=40000,tp_dst=80
br-inband||in_port=LOCAL,udp,$all,$mine,nw_src=0.0.0.0,nw_dst=255.255.255.255,nw_ttl=64,udp_src=68,udp_dst=67
br-inband||in_port=@uplink0@,tcp,dl_dst=52:54:00:e0:00:01,dl_src=$gw,nw_src=203.0.113.66,nw_dst=203.0.113.5,nw_ttl=64,tp_src=6653,tp_dst=40000
br-inband||in_port=@uplink0@,tcp,dl_dst=52:54:00:e0:00:01,dl_src=$gw,nw_src=192.0.2.67,nw_dst=203.0.113.5,nw_ttl=64,tp_src=6633,tp_dst=40000
br-inband||in_port=@uplink0@,tcp,dl_dst=02:e1:00:00:00:01,dl_src=$gw,nw_src=192.0.2.67,nw_dst=203.0.113.77,nw_ttl=64,tp_src=6633,tp_dst=40000
br-inband||in_port=@uplink0@,arp,$all,dl_src=$gw,arp_op=1,arp_spa=203.0.113.66,arp_tpa=203.0.113.5
br-inband||in_port=@uplink0@,arp,dl_dst=52:54:00:e0:00:01,dl_src=$gw,arp_op=2,arp_spa=203.0.113.66,arp_tpa=203.0.113.5
br-inband||in_port=@uplink0@,udp,$all,dl_src=$gw,nw_src=203.0.113.1,nw_dst=255.255.255.255,nw_ttl=64,udp_src=67,udp_dst=68
br-inband||in_port=@uplink0@,dl_dst=01:80:c2:00:00:0e,dl_src=$gw,dl_type=0x88cc
br-inband||in_port=@uplink0@,icmp,dl_dst=02:e1:00:00:00:01,dl_src=$gw,$ip,icmp_type=8,icmp_code=0
br-inband||in_port=@vm1@,icmp,$all,dl_src=02:e1:00:00:00:01,$ip,icmp_type=8,icmp_code=0
br-inband||in_port=@vm2@,tcp,dl_dst=02:e1:00:00:00:01,dl_src=02:e1:00:00:00:02,$ip,tp_src=1,tp_dst=2
br-inband||in_port=@vm2@,tcp,dl_dst=$gw,dl_src=02:e1:00:00:00:02,nw_src=203.0.113.8,nw_dst=203.0.113.66,nw_ttl=64,tp_src=1,tp_dst=6653
# fail-open
br-open||in_port=@o1@,tcp,dl_dst=02:e2:00:00:00:99,dl_src=02:e2:00:00:00:01,$ip,tp_src=1,tp_dst=2
br-open||in_port=@o2@,dl_vlan=5,tcp,dl_dst=02:e2:00:00:00:01,dl_src=02:e2:00:00:00:02,$ip,tp_src=1,tp_dst=2
br-open||in_port=@o2@,dl_vlan=6,arp,$all,dl_src=02:e2:00:00:00:02,arp_op=1
br-open||in_port=LOCAL,arp,$all,dl_src=52:54:00:e0:00:02,arp_op=1
br-open2||in_port=@p1@,tcp,dl_dst=02:e3:00:00:00:02,dl_src=02:e3:00:00:00:01,$ip,tp_src=1,tp_dst=2
br-open2||in_port=@p1@,arp,$all,dl_src=02:e3:00:00:00:01,arp_op=1
br-open2||in_port=LOCAL,tcp,$all,dl_src=52:54:00:e0:00:03,nw_src=192.0.2.5,nw_dst=192.0.2.68,nw_ttl=64,tp_src=1,tp_dst=6653
# sFlow: one output, several, tagged, none
br-sflow||in_port=@s1@,tcp,dl_dst=02:e4:00:00:00:03,dl_src=02:e4:00:00:00:01,$ip,tp_src=1,tp_dst=2
br-sflow||in_port=@s3@,dl_vlan=40,tcp,dl_dst=02:e4:00:00:00:01,dl_src=02:e4:00:00:00:03,$ip,tp_src=1,tp_dst=2
br-sflow||in_port=@s2@,arp,$all,dl_src=02:e4:00:00:00:02,arp_op=1
br-sflow||in_port=@s3@,dl_vlan=41,dl_vlan_pcp=4,arp,$all,dl_src=02:e4:00:00:00:03,arp_op=1
br-sflow||in_port=@s3@,dl_vlan=77,arp,$all,dl_src=02:e4:00:00:00:03,arp_op=1
br-sflow||in_port=@s2@,tcp6,dl_dst=02:e4:00:00:00:01,dl_src=02:e4:00:00:00:02,ipv6_src=fd00::1,ipv6_dst=fd00::2,tp_src=1,tp_dst=2,nw_ttl=64
br-sflow||in_port=LOCAL,arp,$all,dl_src=52:54:00:e0:00:04,arp_op=1,arp_spa=198.51.100.5,arp_tpa=198.51.100.1
# IPFIX and NetFlow on a bridge: in, out, through a tunnel
br-ipfix||in_port=@i2@,tcp,dl_dst=02:e5:00:00:00:01,dl_src=02:e5:00:00:00:02,$ip,tp_src=1,tp_dst=2
br-ipfix||in_port=@i1@,tcp,dl_dst=02:e5:00:00:00:09,dl_src=02:e5:00:00:00:01,$ip,tp_src=1,tp_dst=2
br-ipfix||in_port=@i1@,arp,$all,dl_src=02:e5:00:00:00:01,arp_op=1
br-ipfix||in_port=@i3@,udp,dl_dst=02:e5:00:00:00:99,dl_src=02:e5:00:00:00:03,$ip,udp_src=1,udp_dst=2
br-ipfix||in_port=@vx0@,tun_src=10.20.0.9,tun_dst=10.20.0.5,tun_id=50,tcp,dl_dst=02:e5:00:00:00:01,dl_src=02:e5:00:00:00:09,$ip,tp_src=1,tp_dst=2
br-ipfix||in_port=@vx0@,tun_src=10.20.0.9,tun_dst=10.20.0.5,tun_id=50,icmp,$all,dl_src=02:e5:00:00:00:09,$ip,icmp_type=8,icmp_code=0
br-ipfix||in_port=LOCAL,icmp,$all,dl_src=52:54:00:e0:00:05,$ip,icmp_type=8,icmp_code=0
# samples by flow; groups and bundles with ports that have a CFM fault
PACKETS
    for n in {1..11}; do
        printf 'br-sample||in_port=@m1@,tcp,dl_dst=02:e6:00:00:00:02,dl_src=02:e6:00:00:00:01,%s,tp_src=1,tp_dst=%d\n' "$ip" "$n"
    done
    cat <<PACKETS
br-sample||in_port=@m2@,dl_vlan=9,udp,dl_dst=02:e6:00:00:00:02,dl_src=02:e6:00:00:00:04,$ip,udp_src=1,udp_dst=2
br-sample||in_port=@cfm-dead@,udp,dl_dst=02:e6:00:00:00:01,dl_src=02:e6:00:00:00:04,$ip,udp_src=1,udp_dst=2
br-sample||in_port=@cfm-ok@,arp,$all,dl_src=02:e6:00:00:00:05,arp_op=1
br-sample||in_port=@cfm-ok@,dl_dst=01:23:20:00:00:30,dl_src=02:e6:00:00:00:05,dl_type=0x8902
br-sample||in_port=@cfm-odd@,dl_dst=01:80:c2:00:00:30,dl_src=02:e6:00:00:00:05,dl_type=0x8902
PACKETS
}
