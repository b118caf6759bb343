package file

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
)

func TestClusterMemberIsServedAsItWasLive(t *testing.T) {
	file, s := clustered(t)
	live := s.content(t, ovsdb.OVS)
	dst, info, remarks := standaloneFile(t, file)
	noRemarks(t, remarks)
	expect.Equal(t, info.Form, FormClustered, "info", info)
	expect.Equal(t, info.Name, ovsdb.OVS, "info", info)
	expect.Equal(t, info.Damaged, 0, "info", info)
	differ(t, served(t, dst), live)

	// For a simple log, ovsdb-tool gives the same result.
	tools := filepath.Join(t.TempDir(), "tool.db")
	ovs.Run(t, "ovsdb-tool", "cluster-to-standalone", tools, file)
	differ(t, served(t, tools), live)

	// Compaction moves the data to the first record.
	ovs.Run(t, "ovs-appctl", "-t", s.ctl, "ovsdb-server/compact")
	s.vsctl(t, "add-port br-int p3")
	live = s.content(t, ovsdb.OVS)
	if text := string(split(t, file)[0]); !strings.Contains(text, `"p2"`) {
		t.Fatal("compaction left no snapshot: this test shows nothing")
	}
	dst, _, remarks = standaloneFile(t, file)
	noRemarks(t, remarks)
	differ(t, served(t, dst), live)
}

// TestSchemaConversionReplacesTheContent reads a log with a schema conversion, which is
// an entry with a schema and the whole content. ovsdb-tool applies it as another
// difference, which cancels columns out.
func TestSchemaConversionReplacesTheContent(t *testing.T) {
	file, s := clustered(t)
	schema := regexp.MustCompile(`"version": "[^"]*"`).ReplaceAll(read(t, ovsSchema), []byte(`"version": "99.0.0"`))
	schema = regexp.MustCompile(`"cksum": "[^"]*",`).ReplaceAll(schema, nil)
	ovs.Run(t, "ovsdb-client", ovs.Timeout(), "convert", s.remote, write(t, schema))
	s.vsctl(t, "add-port br-int p3")
	live := s.content(t, ovsdb.OVS)
	dst, info, remarks := standaloneFile(t, file)
	noRemarks(t, remarks)
	expect.Equal(t, info.Version, "99.0.0", "version")
	if got := ovs.Run(t, "ovsdb-tool", "db-version", dst); strings.TrimSpace(got) != "99.0.0" {
		t.Errorf("version served: %s", got)
	}
	differ(t, served(t, dst), live)
	inspected, err := Inspect(t.Context(), bytes.NewReader(read(t, file)))
	if err != nil || inspected.Version != "99.0.0" {
		t.Errorf("Inspect: %+v, %v", inspected, err)
	}
}

func TestFollowersFileIsServed(t *testing.T) {
	leader, s := clustered(t)
	dir := filepath.Dir(leader)
	file := filepath.Join(dir, "db2")
	ovs.Run(t, "ovsdb-tool", "join-cluster", file, ovsdb.OVS, "unix:"+filepath.Join(dir, "raft2"),
		"unix:"+filepath.Join(dir, "raft"))

	_, _, err := Standalone(t.Context(), file, filepath.Join(t.TempDir(), "dst"))
	if !errors.Is(err, ErrJoinOnly) || !strings.Contains(err.Error(), "join-cluster") ||
		!strings.Contains(err.Error(), "another member") {
		t.Errorf("before it joined: %v", err)
	}

	follower := serve(t, file)
	ovs.Run(t, "ovsdb-client", ovs.Timeout(), "wait", follower.remote, ovsdb.OVS, "connected")
	s.vsctl(t, "add-port br-int p3")
	live := s.content(t, ovsdb.OVS)
	for range 100 {
		if ovs.Run(t, "ovsdb-client", ovs.Timeout(), "--no-leader-only", "-f", "json", "--pretty", "dump", follower.remote,
			ovsdb.OVS) == live {
			break
		}
	}
	dst, _, remarks := standaloneFile(t, file)
	noRemarks(t, remarks)
	differ(t, served(t, dst), live)
}

// lastIndex returns the index of the last entry in a file, its term and the term of
// the last vote or leader.
func lastIndex(t *testing.T, file string) (index, term int) {
	t.Helper()
	for _, found := range regexp.MustCompile(`"index":(\d+)`).FindAllSubmatch(read(t, file), -1) {
		fmt.Sscan(string(found[1]), &index)
	}
	for _, found := range regexp.MustCompile(`"term":(\d+)`).FindAllSubmatch(read(t, file), -1) {
		fmt.Sscan(string(found[1]), &term)
	}
	return index, term
}

// entry returns a log entry that gives the Open_vSwitch row another external id.
func entry(index, term int, uuid, key string) []byte {
	return rec("CLUSTER", fmt.Sprintf(`{"term":%d,"index":%d,"eid":"0190fe17-d1ae-7091-a034-%012d","data":[null,`+
		`{"_is_diff":true,"Open_vSwitch":{"%s":{"external_ids":["map",[["%s","x"]]]}}}]}`, term, index, index*10+term, uuid,
		key))
}

func commit(index int) []byte { return rec("CLUSTER", fmt.Sprintf(`{"commit_index":%d}`, index)) }

// rootUUID returns the UUID of the only row of table Open_vSwitch.
func rootUUID(t *testing.T, s *server) string {
	t.Helper()
	return strings.TrimSpace(ovs.Run(t, "ovs-vsctl", ovs.Timeout(), "--no-wait", "--db="+s.remote, "get", "open", ".",
		"_uuid"))
}

// TestReplacedEntriesAreLeftOut compares with a real ovsdb-server of the same log.
func TestReplacedEntriesAreLeftOut(t *testing.T) {
	file, s := clustered(t)
	root := rootUUID(t, s)
	s.stop()
	n, term := lastIndex(t, file)
	log := [][]byte{read(t, file),
		entry(n+1, term, root, "stale1"), entry(n+2, term, root, "stale2"), entry(n+3, term, root, "stale3"),
		entry(n+1, term+1, root, "kept1"), entry(n+2, term+1, root, "pended"),
		entry(n+2, term+2, root, "kept2"), commit(n + 2)}
	made := write(t, log...)
	dst, _, remarks := standaloneFile(t, made)
	got := served(t, dst)
	for _, key := range []string{"stale1", "stale2", "stale3", "pended"} {
		if strings.Contains(got, key) {
			t.Errorf("%s is served", key)
		}
	}
	if !strings.Contains(got, "kept1") || !strings.Contains(got, "kept2") {
		t.Error("an entry that was not replaced is not served")
	}
	wantRemark(t, remarks, "4 entries", "replaced by a later leader")
	differ(t, got, serve(t, writeOver(t, file, log...)).content(t, ovsdb.OVS))
}

// writeOver replaces a cluster member's file, so that a server finds its address.
func writeOver(t *testing.T, file string, parts ...[]byte) string {
	t.Helper()
	text := bytes.Join(parts, nil)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestUncommittedEntriesAreLeftOut(t *testing.T) {
	file, s := clustered(t)
	live, root := s.content(t, ovsdb.OVS), rootUUID(t, s)
	s.stop()
	n, term := lastIndex(t, file)
	dst, _, remarks := standaloneFile(t, write(t, read(t, file), entry(n+1, term, root, "a"), entry(n+2, term, root, "b")))
	differ(t, served(t, dst), live)
	wantRemark(t, remarks, "2 entries", "not committed yet")
}

// TestReplacedSchemaChangeBringsTheOldContentBack reads a log in which the replaced
// entry is a schema conversion.
func TestReplacedSchemaChangeBringsTheOldContentBack(t *testing.T) {
	file, s := clustered(t)
	root := rootUUID(t, s)
	s.stop()
	n, term := lastIndex(t, file)
	change := rec("CLUSTER", fmt.Sprintf(`{"term":%d,"index":%d,"eid":"0190fe17-d1ae-7091-a034-000000000001",`+
		`"data":[{"name":"Open_vSwitch","version":"99.0.0","tables":{}},{}]}`, term, n+1))
	log := [][]byte{read(t, file), change, entry(n+2, term, root, "stale"), entry(n+1, term+1, root, "kept"),
		commit(n + 1)}
	dst, _, remarks := standaloneFile(t, write(t, log...))
	wantRemark(t, remarks, "2 entries", "replaced by a later leader")
	got := served(t, dst)
	if !strings.Contains(got, "kept") || strings.Contains(got, "stale") {
		t.Errorf("served: %s", got)
	}
	differ(t, got, serve(t, writeOver(t, file, log...)).content(t, ovsdb.OVS))
}

func TestTornAndAnonymisedClusterMember(t *testing.T) {
	file, s := clustered(t)
	live := s.content(t, ovsdb.OVS)
	s.stop()
	text := []byte(anonymise.Replace(string(read(t, file))))
	text = append(text, entry(1000, 1, "0190fe17-d1ae-7091-a034-22ade2121dc0", "torn")[:90]...)
	dst, _, remarks := standaloneFile(t, write(t, text))
	differ(t, served(t, dst), anonymise.Replace(live))
	wantRemark(t, remarks, "rewritten")
	wantRemark(t, remarks, "the last one", "cut off")
}

func TestDestroyedClusterEntryLosesOnlyItsContent(t *testing.T) {
	file, s := clustered(t)
	s.stop()
	parts := split(t, file)
	for i, part := range parts {
		if bytes.Contains(part, []byte(`"remote_ip"`)) { // inserts vx, deleted later
			parts[i] = bytes.Replace(part, []byte(`":{`), []byte(`:{`), 1)
		}
	}
	dst, _, remarks := standaloneFile(t, write(t, parts...))
	got := served(t, dst)
	if strings.Contains(got, `"vx"`) || !strings.Contains(got, `"p2"`) || !strings.Contains(got, `"br-int"`) {
		t.Errorf("remarks %q, served:\n%s", remarks, got)
	}
	wantRemark(t, remarks, "1 entry of the cluster's log missing")
}
