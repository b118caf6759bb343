# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by lib.sh
# A node with 4,000 ports and three flows for each, to measure a restore with
# many ports. Five hundred ports are added at a time, as after a reboot: the
# cost of a port grows with the number of ports and of transactions (49 s with
# fifty at a time, 11 s with five hundred).

TOPO_SUMMARY='4,000 ports on one bridge, three flows each, forty VLANs, one flood to them all'
TOPO_HOST=dense-01
TOPO_SYSTEM_ID=0c4f7d2e-91ab-4b6d-8e57-d3a1f0c94001
TOPO_OVN=no

PORTS=4000

# port_name N, its VLAN and its last two bytes of MAC and IP
port_name() { printf 'tap%06x%02x-%02x' $(($1 * 7919)) $(($1 % 251)) $(($1 % 97)); }

topo_node() {
    local n
    local -a add=()
    ovs-vsctl add-br br-int -- set Bridge br-int datapath_type=system fail_mode=secure \
        protocols=OpenFlow10,OpenFlow13,OpenFlow15 other_config:hwaddr='"52:54:00:ff:00:01"' \
        other_config:mac-table-size=50000
    ovs-vsctl add-br br-phy -- set Bridge br-phy datapath_type=system protocols=OpenFlow10,OpenFlow13 \
        other_config:hwaddr='"52:54:00:ff:00:02"' -- add-port br-phy eth1 \
        -- add-port br-phy phy-int -- set Interface phy-int type=patch options:peer=int-phy \
        -- add-port br-int int-phy -- set Interface int-phy type=patch options:peer=phy-int
    for ((n = 1; n <= PORTS; n++)); do
        add+=(-- add-port br-int "$(port_name $n)" "tag=$((n % 40 + 1))")
        if ((n % 500 == 0)); then
            ovs-vsctl --no-wait "${add[@]}"
            add=()
        fi
    done
    wait_for "the ports" 60 has_ports
}

has_ports() { [[ $(ovs-appctl dpif/show | grep -c ' tap') == "$PORTS" ]]; }

port_flows() {
    local n name number mac ip
    local -A numbers=()
    while IFS=, read -r name number; do
        numbers[$name]=$number
    done < <(ovs-vsctl --format=csv --no-headings --data=bare --columns=name,ofport list Interface)
    printf 'table=0,priority=1,in_port=%d,actions=resubmit(,20)\n' "${numbers[int-phy]}"
    printf 'table=0,priority=0,actions=drop\ntable=10,priority=0,actions=drop\ntable=20,priority=0,actions=NORMAL\n'
    printf 'table=0,priority=90,udp,udp_dst=7,actions=FLOOD\n'
    for ((n = 1; n <= PORTS; n++)); do
        number=${numbers[$(port_name $n)]}
        printf -v mac 'fa:16:3e:00:%02x:%02x' $((n >> 8)) $((n & 255))
        printf -v ip '10.%d.%d.%d' $((n % 40)) $((n >> 8)) $((n & 255))
        printf 'cookie=0x%x,table=0,priority=10,in_port=%d,actions=load:0x%x->NXM_NX_REG5[],resubmit(,10)\n' "$n" "$number" "$number"
        printf 'cookie=0x%x,table=10,priority=10,ip,reg5=0x%x,dl_src=%s,nw_src=%s,actions=resubmit(,20)\n' "$n" "$number" "$mac" "$ip"
        printf 'cookie=0x%x,table=20,priority=20,dl_vlan=%d,dl_dst=%s,actions=strip_vlan,output:%d\n' "$n" $((n % 40 + 1)) "$mac" "$number"
    done
}

topo_finish() {
    local n arp='arp,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1'
    port_flows | ovs-ofctl -O OpenFlow13 --bundle add-flows br-int -
    for n in 100 200 300 400; do
        ovs-appctl netdev-dummy/set-admin-state "$(port_name $n)" down >/dev/null
    done
    for n in {1..20}; do
        add_learned br-int "$(port_name $((n * 190)))" $((n * 190 % 40 + 1)) \
            "$(printf 'fa:16:3e:00:%02x:%02x' $((n * 190 >> 8)) $((n * 190 & 255)))"
    done
    hear br-phy "in_port=@eth1@,dl_vlan=5,$arp,dl_src=02:00:00:00:00:01"
}

topo_packets() {
    local n mac ip
    for n in {1..40}; do
        n=$((n * 95))
        printf -v mac 'fa:16:3e:00:%02x:%02x' $((n >> 8)) $((n & 255))
        printf -v ip '10.%d.%d.%d' $((n % 40)) $((n >> 8)) $((n & 255))
        printf 'br-int||in_port=@%s@,tcp,dl_src=%s,dl_dst=02:00:00:00:00:01,nw_src=%s,nw_dst=10.0.0.1,nw_ttl=64,tp_src=1,tp_dst=2\n' \
            "$(port_name $n)" "$mac" "$ip"
        printf 'br-phy||in_port=@eth1@,dl_vlan=%d,tcp,dl_src=02:00:00:00:00:01,dl_dst=%s,nw_src=10.0.0.1,nw_dst=%s,nw_ttl=64,tp_src=1,tp_dst=2\n' \
            $((n % 40 + 1)) "$mac" "$ip"
    done
    cat <<PACKETS
br-int||in_port=@$(port_name 5)@,udp,dl_src=fa:16:3e:00:00:05,dl_dst=ff:ff:ff:ff:ff:ff,nw_src=10.5.0.5,nw_dst=10.0.0.1,nw_ttl=64,udp_src=1,udp_dst=7
br-int||in_port=@$(port_name 5)@,arp,dl_src=fa:16:3e:00:00:05,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1
br-int||in_port=@$(port_name 6)@,ip,dl_src=fa:16:3e:00:00:06,dl_dst=ff:ff:ff:ff:ff:ff,nw_src=10.6.0.6,nw_dst=10.0.0.1,nw_ttl=64
br-phy||in_port=@eth1@,dl_vlan=5,arp,dl_src=02:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1
br-phy||in_port=LOCAL,arp,dl_src=52:54:00:ff:00:02,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1
PACKETS
}
