# shellcheck shell=bash
# Makes two recordings of the same topology alike. OVN's databases name rows by random UUIDs, and nearly all other
# identities follow from their order: keys of tunnels, ids of ECMP routes and of groups, zones, cookies of flows. Here rows get
# UUIDs that follow from what is in them.

# made_uuid TEXT: prints a UUID that depends on TEXT only.
made_uuid() {
    local sum
    sum=$(printf '%s' "$1" | md5sum)
    printf '%s-%s-4%s-8%s-%s' "${sum:0:8}" "${sum:8:4}" "${sum:13:3}" "${sum:17:3}" "${sum:20:12}"
}

# made_mac TEXT: prints a locally administered MAC that depends on TEXT only.
made_mac() {
    local sum
    sum=$(printf '%s' "$1" | md5sum)
    printf '7a:%s:%s:%s:%s:%s' "${sum:0:2}" "${sum:2:2}" "${sum:4:2}" "${sum:6:2}" "${sum:8:2}"
}

# fix_uuids CONTROL DATABASE FILE SEED: gives the rows of a database UUIDs that depend on the rows and SEED only.
# Its server's control socket is CONTROL; nothing may be connected to it that remembers UUIDs.
fix_uuids() {
    local control=$1 database=$2 file=$3 seed data
    seed=$(cksum <<<"$4 $2")
    ovs-appctl -t "$control" ovsdb-server/remove-db "$database"
    ovsdb-tool compact "$file"
    sed -n 4p "$file" | sed "s/$(row_key)/\n&/g" >"$file.rows"
    awk -v seed=$((${seed%% *} % 1000000)) "$RENAME_ROWS" "$file.rows" "$file.rows" >"$file.data"
    data=$(sha1sum "$file.data")
    {
        sed -n 1,2p "$file"
        printf 'OVSDB JSON %d %s\n' "$(stat -c %s "$file.data")" "${data%% *}"
        cat "$file.data"
    } >"$file.new"
    mv "$file.new" "$file"
    rm "$file".{rows,data}
    ovs-appctl -t "$control" ovsdb-server/add-db "$file"
}

# row_key prints a regular expression for the beginning of a row in a database's file.
row_key() {
    local x='[0-9a-f]'
    printf '"%s\\{8\\}-%s\\{4\\}-%s\\{4\\}-%s\\{4\\}-%s\\{12\\}":{' "$x" "$x" "$x" "$x" "$x"
}

# RENAME_ROWS reads a database twice, a line for each row. A name follows from what a row says and from the names of the
# rows to which it refers, and from those that refer to it; times in milliseconds do not count.
# shellcheck disable=SC2016 # the dollars of awk
RENAME_ROWS='
    function rename(text,   done) {
        done = ""
        while (match(text, UUID)) {
            id = substr(text, RSTART, RLENGTH)
            done = done substr(text, 1, RSTART - 1) (id in name ? name[id] : id)
            text = substr(text, RSTART + RLENGTH)
        }
        return done text
    }
    # Returns what a row says, with the names to which it refers in order behind it, or "" if one has no name yet.
    function says(row, last,   rest, text, n, i, found) {
        rest = substr(body[row], 40)
        text = table[row]
        n = 0
        while (match(rest, UUID)) {
            id = substr(rest, RSTART, RLENGTH)
            text = text substr(rest, 1, RSTART - 1)
            if (!(id in table)) text = text id
            else if (id in name) {
                for (i = n++; i > 0 && found[i - 1] > name[id]; i--) found[i] = found[i - 1]
                found[i] = name[id]
            } else if (!last) return ""
            rest = substr(rest, RSTART + RLENGTH)
        }
        text = text rest
        gsub(TIME, "", text)
        for (i = 0; i < n; i++) text = text " " found[i]
        return text " " least[row]
    }
    # Finds for each row the least of what the rows say that refer to it: two groups of the same datapaths have different flows.
    function compare(row,   plain, rest) {
        plain = body[row]
        gsub(UUID, "", plain)
        gsub(TIME, "", plain)
        rest = substr(body[row], 40)
        while (match(rest, UUID)) {
            id = substr(rest, RSTART, RLENGTH)
            if (id in table && (!(id in least) || plain < least[id])) least[id] = plain
            rest = substr(rest, RSTART + RLENGTH)
        }
    }
    # Names the rows whose references have names, or at last all, and returns how many.
    function round(last,   row, text, n, of) {
        for (row in table)
            if (!(row in name) && (text = says(row, last)) != "") of[row] = uuid(text)
        n = 0
        for (row in of) {
            name[row] = of[row]
            n++
        }
        return n
    }
    # Two sums, of which the first is what OVN makes the cookies of flows from. Equal rows count.
    function uuid(text,   i, c, a, b) {
        text = seed " " text " " ++seen[text]
        a = b = 7
        for (i = length(text); i > 0; i--) {
            c = index(ASCII, substr(text, i, 1))
            a = (a * 8191 + c) % 4294967291
            b = (b * 131 + c) % 4294967279
        }
        return sprintf("%04x%04x-%04x-4%03x-8%03x-%04x%08x", a / 65536, a % 65536, b % 65536, seed % 4096, b / 1048576, b % 65521, seed)
    }
    BEGIN {
        x = "[0-9a-f]"
        four = x x x x
        UUID = four four "-" four "-" four "-" four "-" four four four
        d = "[0-9][0-9][0-9][0-9]"
        TIME = "[0-9]" d d d
        for (c = 32; c < 127; c++) ASCII = ASCII sprintf("%c", c)
    }
    FNR == NR {
        if (FNR > 1) {
            id = substr($0, 2, 36)
            body[id] = $0
            # The last row of a table has the name of the next table behind it.
            sub(/\}\},".*$/, "", body[id])
            sub(/[},]*$/, "", body[id])
            table[id] = current
        }
        if (match($0, /"[A-Za-z_0-9]+":\{$/)) current = substr($0, RSTART)
        next
    }
    FNR == 1 {
        for (row in table) compare(row)
        while (round(0));
        round(1)
    }
    { printf "%s", rename($0) }
    END { print "" }'

# publish_northbound fixes the UUIDs of a northbound database that is complete, and starts ovn-northd on it.
publish_northbound() {
    # ovn-northd chooses by chance what is not there. Networks of two releases are two networks.
    ovn-nbctl set NB_Global . options:svc_monitor_mac="\"$(made_mac "$TOPO_HOST $(ovn-nbctl --version | sed -n 1p)")\"" \
        -- add NB_Global . options 'mac_prefix="2e:02:00"'
    fix_uuids "$CENTRAL/ovnnb_db.ctl" OVN_Northbound "$CENTRAL/ovnnb_db.db" "$TOPO_HOST"
    start_northd
}

# fix_southbound does that for the southbound database. ovn-northd must have ended, and all instances of ovn-controller.
fix_southbound() {
    fix_uuids "$CENTRAL/ovnsb_db.ctl" OVN_Southbound "$CENTRAL/ovnsb_db.db" "$TOPO_HOST"
}

stop_northd() { end_daemon "$CENTRAL" ovn-northd exit; }

# forget_node ends ovn-controller, and removes the ports of tunnels, which it will add in the order of the chassis.
forget_node() {
    local port
    local -a words=()
    end_daemon "$LAB/ovn" ovn-controller exit --restart
    while read -r port; do
        [[ -z $port ]] || words+=(-- del-port "$port")
    done < <(ovs-vsctl --bare --columns=name find Port 'external_ids:ovn-chassis-id!=""')
    ((${#words[@]} == 0)) || ovs-vsctl "${words[@]}"
}

# end_daemon DIR NAME WORDS...: ends a daemon in an orderly manner, and removes its log: the next one begins another.
end_daemon() {
    local pid
    pid=$(daemon_pid "$1/$2.pid")
    ovs-appctl -t "$1/$2.$pid.ctl" "${@:3}"
    wait_for "$2 to end" 20 is_ended "$1/$2.pid"
    rm -f "$1/$2.log"
}
