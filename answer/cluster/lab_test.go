package cluster_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ovs-offline/answer/cluster"
	"ovs-offline/answer/rule"
	"ovs-offline/pkg/ovsdb/raft"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
)

// lab is a cluster of real servers with switches in its database.
type lab struct {
	*ovs.Cluster
	t        *testing.T
	switches int
}

func start(t *testing.T, n int) *lab {
	t.Helper()
	t.Parallel()
	l := &lab{Cluster: ovs.StartCluster(t, n, "OVN_Northbound", ovs.NBSchema), t: t}
	l.write(l.Leader(), 3)
	return l
}

// write adds logical switches through a member.
func (l *lab) write(m *ovs.Member, n int) {
	l.t.Helper()
	for range n {
		l.switches++
		m.Transact(fmt.Sprintf(`{"op":"insert","table":"Logical_Switch","row":{"name":"sw%d"}}`, l.switches))
	}
}

// serves fails the test unless every member serves all switches, and takes another one.
func (l *lab) serves(members ...*ovs.Member) {
	l.t.Helper()
	l.write(l.Leader(), 1)
	for _, m := range members {
		l.Wait(m.Name+" serves all switches", func() bool {
			content := m.Content("Logical_Switch")
			if content != members[0].Content("Logical_Switch") {
				return false
			}
			for i := range l.switches {
				if !strings.Contains(content, fmt.Sprintf(`"sw%d"`, i+1)) {
					return false
				}
			}
			return true
		})
	}
}

// collect copies the files of members, with what the given servers print of themselves.
func (l *lab) collect(members []*ovs.Member, printed ...*ovs.Member) (files []cluster.Member) {
	l.t.Helper()
	folder := l.t.TempDir()
	for _, m := range members {
		file := cluster.Member{Name: m.Name, Path: filepath.Join(folder, m.Name+".db"), Place: m.File, Control: m.Control()}
		text, err := os.ReadFile(m.File)
		if err == nil {
			err = os.WriteFile(file.Path, text, 0o600)
		}
		if err != nil {
			l.t.Fatal(err)
		}
		if slices.Contains(printed, m) {
			file.Status = m.Status()
		}
		files = append(files, file)
	}
	return files
}

// examine examines files, and compares the result with that of ovsdb-tool check-cluster.
func (l *lab) examine(files []cluster.Member) *cluster.Report {
	l.t.Helper()
	report, err := cluster.Examine(l.t.Context(), files)
	if err != nil {
		l.t.Fatal(err)
	}
	agree(l.t, report, files)
	return report
}

// agree fails the test unless the report has a contradiction if and only if check-cluster has one.
func agree(t *testing.T, report *cluster.Report, files []cluster.Member) {
	t.Helper()
	args, joined := []string{"check-cluster"}, 0
	for _, f := range files {
		args = append(args, f.Path)
	}
	out, err := exec.Command("ovsdb-tool", args...).CombinedOutput()
	wrong := false
	for _, c := range report.Clusters {
		for _, s := range c.Servers {
			if s.State != cluster.Joining && s.State != cluster.Absent {
				joined++
			}
		}
		for _, p := range c.Problems {
			switch p.Kind {
			case cluster.Contradicting, cluster.RefusedLog, cluster.LostRecords, cluster.CutOff, cluster.SameServer,
				cluster.TwoClusters:
				wrong = true
			}
		}
	}
	if joined == 0 {
		return // check-cluster has nothing to look at, and says that all logs are empty
	}
	if wrong != (err != nil) {
		t.Errorf("check-cluster: %v: %s\nthe report: %s", err, out, printed(report))
	}
}

func printed(report *cluster.Report) string {
	text, _ := json.MarshalIndent(report.Clusters, "", " ")
	return string(text)
}

// one returns the only problem of a kind, and fails the test unless all problems but notes are of the
// given kinds.
func (l *lab) one(report *cluster.Report, kind cluster.Kind, others ...cluster.Kind) *cluster.Problem {
	l.t.Helper()
	var found []*cluster.Problem
	for _, c := range report.Clusters {
		for _, p := range c.Problems {
			if p.Kind == kind {
				found = append(found, p)
			} else if p.Severity != cluster.Note && !slices.Contains(others, p.Kind) {
				l.t.Errorf("unexpected: %+v", p)
			}
		}
	}
	if len(found) != 1 {
		l.t.Fatalf("%d problems of kind %s in %s", len(found), kind, printed(report))
	}
	return found[0]
}

// problem returns the last problem of a kind, nil if there is none.
func problem(report *cluster.Report, kind cluster.Kind) (found *cluster.Problem) {
	for _, c := range report.Clusters {
		for _, p := range c.Problems {
			if p.Kind == kind {
				found = p
			}
		}
	}
	return found
}

// members returns numbers of members: those of a small cluster, and in a sweep five too.
func members(small ...int) []int {
	if sweep.Whole() {
		return append(small, 5)
	}
	return small
}

// says fails the test unless a problem's text names something.
func (l *lab) says(p *cluster.Problem, words ...string) {
	l.t.Helper()
	text := p.What + "\n" + strings.Join(p.Evidence, "\n") + "\n" + p.Follows
	for _, word := range words {
		if !strings.Contains(text, word) {
			l.t.Errorf("no %q in: %s", word, text)
		}
	}
}

// repair does what the steps of a repair say, on the servers that they name.
func (l *lab) repair(p *cluster.Problem) {
	l.t.Helper()
	for _, step := range p.Repair {
		i := slices.IndexFunc(l.Members, func(m *ovs.Member) bool { return m.Address == step.Server })
		if i < 0 && step.Action != cluster.Look {
			l.t.Fatalf("a step for no server of the lab: %+v", step)
		}
		l.t.Log(step)
		switch step.Action {
		case cluster.Stop:
			l.Members[i].Stop()
		case cluster.Start:
			if l.Members[i].Running() {
				l.Members[i].Signal(syscall.SIGCONT)
				l.Members[i].Reconnect()
			} else {
				l.Members[i].Start()
			}
		case cluster.Run:
			l.run(l.Members[i], step.Command)
		case cluster.Wait:
			l.Wait(step.String(), func() bool {
				out, _ := exec.CommandContext(ovs.Context(l.t), "sh", "-c", l.here(l.Members[i], step.Command)).Output()
				return strings.Contains(string(out), step.Until)
			})
		}
	}
}

// run runs a command as a person pastes it into a shell of a member's host. Where no file of a member
// was given, the command has the usual paths.
func (l *lab) run(m *ovs.Member, command string) {
	l.t.Helper()
	command = l.here(m, command)
	if out, err := exec.CommandContext(ovs.Context(l.t), "sh", "-c", command).CombinedOutput(); err != nil {
		l.t.Fatalf("%s: %v: %s", command, err, out)
	}
}

func (l *lab) here(m *ovs.Member, command string) string {
	return strings.NewReplacer("/var/lib/ovn/ovnnb_db.db", m.File, "/var/run/ovn/ovnnb_db.ctl",
		m.Control()).Replace(command)
}

// without returns the members but for some.
func (l *lab) without(not ...*ovs.Member) []*ovs.Member {
	return slices.DeleteFunc(slices.Clone(l.Members), func(m *ovs.Member) bool { return slices.Contains(not, m) })
}

// id returns the UUID of a member's server.
func (l *lab) id(m *ovs.Member) string {
	l.t.Helper()
	return strings.TrimSpace(ovs.Run(l.t, "ovsdb-tool", "db-sid", m.File))
}

// lose ends a member and deletes its file.
func (l *lab) lose(members ...*ovs.Member) {
	l.t.Helper()
	for _, m := range members {
		m.Kill()
		if err := os.Remove(m.File); err != nil {
			l.t.Fatal(err)
		}
	}
}

// tries waits until members have asked for votes in vain. It returns the members of which only the output of
// cluster/status shows that: since Open vSwitch 3.4, a server asks the others first whether they would
// vote for it, and writes a new term only then.
func (l *lab) tries(members ...*ovs.Member) (printed []*ovs.Member) {
	l.t.Helper()
	for _, m := range members {
		var since time.Time
		l.Wait(m.Name+" asks for votes", func() bool {
			log, err := raft.Read(l.t.Context(), nil, m.File)
			if since.IsZero() && strings.Contains(m.Status(), "Status: disconnected") {
				since = time.Now()
			}
			if err != nil || log.Elections() > 1 {
				return err == nil
			}
			if since.IsZero() || time.Since(since) < 4*time.Second { // two more elections
				return false
			}
			printed = append(printed, m)
			return true
		})
	}
	return printed
}

func TestSoundClusterHasNoProblem(t *testing.T) {
	for _, n := range members(1, 3) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := start(t, n)
			l.serves(l.Members...)
			l.statusesOfSound()
			report := l.examine(l.collect(l.Members, l.Members...))
			for _, c := range report.Clusters {
				if len(c.Problems) > 0 || len(c.Committed) != n || len(report.Clusters) != 1 {
					t.Errorf("problems: %s", printed(report))
				}
				if last := c.Terms[len(c.Terms)-1]; last.Leader != l.id(l.Leader()) || last.Begin.IsZero() {
					t.Errorf("the last term: %+v", last)
				}
			}
		})
	}
}

// TestOneFileOfASoundCluster has nothing to say about the members whose files are missing.
func TestOneFileOfASoundCluster(t *testing.T) {
	l := start(t, 3)
	for _, m := range l.Members {
		report := l.examine(l.collect([]*ovs.Member{m}))
		if report.Found() {
			t.Errorf("%s", printed(report))
		}
		l.one(report, cluster.NoFile)
	}
}

func TestMajorityIsLost(t *testing.T) {
	type cut struct{ members, killed int }
	for _, c := range sweep.Rows([]cut{{3, 2}, {5, 3}}, func(c cut) bool { return c.members == 3 }) {
		t.Run(fmt.Sprintf("%d of %d", c.killed, c.members), func(t *testing.T) {
			l := start(t, c.members)
			lost := l.Members[:c.killed]
			l.Wait("all have the data", func() bool {
				return strings.Contains(l.Members[c.members-1].Content("Logical_Switch"), "sw3")
			})
			l.lose(lost...)
			printed := l.tries(l.without(lost...)...)
			p := l.one(l.examine(l.collect(l.without(lost...), printed...)), cluster.NoQuorum)
			for _, m := range lost {
				l.says(p, m.Address)
			}
			l.repair(p)
			l.serves(l.Members...)
		})
	}
}

// TestServersDoNotRun kills a majority whose files stay: to start them is all that is needed.
func TestServersDoNotRun(t *testing.T) {
	l := start(t, 3)
	down := l.Members[:2]
	for _, m := range down {
		m.Kill()
	}
	printed := l.tries(l.Members[2])
	p := l.one(l.examine(l.collect(l.Members, printed...)), cluster.NoLeader)
	l.says(p, down[0].Address, down[1].Address)
	l.repair(p)
	l.serves(l.Members...)
}

func TestMemberIsCutOffFromTheOthers(t *testing.T) {
	for _, n := range members(3) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := start(t, n)
			before := l.Leader()
			before.Signal(syscall.SIGSTOP) // it neither sends nor receives
			leader := l.leaderWithout(before)
			l.write(leader, 3)
			report := l.examine(l.collect(l.Members, leader))
			p := l.one(report, cluster.Behind, cluster.Dead)
			l.says(p, before.Address)
			l.repair(p)
			l.serves(l.Members...)
		})
	}
}

// leaderWithout waits for a leader while a member does not answer.
func (l *lab) leaderWithout(not *ovs.Member) (leader *ovs.Member) {
	l.t.Helper()
	l.Wait("another leader", func() bool {
		for _, m := range l.without(not) {
			if strings.Contains(m.Status(), "Leader: self\n") {
				leader = m
			}
		}
		return leader != nil
	})
	return leader
}

func TestServerIsGone(t *testing.T) {
	for _, n := range members(3) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := start(t, n)
			leader := l.Leader()
			gone := l.Other(leader)
			id := l.id(gone)
			l.lose(gone)
			var p *cluster.Problem
			l.Wait("the leader misses it", func() bool {
				p = problem(l.examine(l.collect(l.without(gone), leader)), cluster.Dead)
				return p != nil
			})
			l.says(p, gone.Address)
			if !slices.Equal(p.Servers, []string{id}) {
				t.Errorf("servers %q", p.Servers)
			}
			l.repair(p)
			l.Wait("it is removed", func() bool { return !strings.Contains(leader.Status(), gone.Address) })
			l.serves(l.without(gone)...)
		})
	}
}

// TestDiskOfAMemberIsReplaced gives a member a new file, as a pod that lost its disk gets, while the
// cluster still counts the old server at its address.
func TestDiskOfAMemberIsReplaced(t *testing.T) {
	l := start(t, 3)
	leader := l.Leader()
	replaced := l.Other(leader)
	old := l.id(replaced)
	files := l.collect([]*ovs.Member{replaced})
	files[0].Name = "old"
	l.lose(replaced)
	replaced.Join(leader.Address)
	replaced.Start()
	replaced.WaitFor("Status: cluster member")
	l.write(leader, 1)
	l.statusesOfNewID(leader, replaced, old)
	p := l.one(l.examine(l.collect(l.Members)), cluster.SameAddress)
	l.says(p, replaced.Address, old[:4])
	l.one(l.examine(append(l.collect(l.Members), files...)), cluster.SameAddress, cluster.Behind)
	l.repair(p)
	l.Wait("it is removed", func() bool { return !strings.Contains(leader.Status(), "("+old[:4]+" at") })
	l.serves(l.Members...)
}

func TestMemberWasRemovedWhileItWasDown(t *testing.T) {
	l := start(t, 3)
	leader := l.Leader()
	removed := l.Other(leader)
	id := l.id(removed)
	removed.Kill()
	if _, err := leader.Appctl("cluster/kick", l.Database, id); err != nil {
		t.Fatal(err)
	}
	l.Wait("it is removed", func() bool { return !strings.Contains(leader.Status(), removed.Address) })
	l.write(leader, 2)
	removed.Start()
	printed := l.tries(removed)
	l.only("removed", l.seen(leader, removed), cluster.WasRemoved, removed)
	p := l.one(l.examine(l.collect(l.Members, printed...)), cluster.WasRemoved)
	l.says(p, removed.Address, "kick")
	if p.Severity != cluster.Error {
		t.Errorf("severity %s", p.Severity)
	}
	l.repair(p)
	l.serves(l.Members...)
}

func TestMemberHasLeft(t *testing.T) {
	for _, n := range members(3) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := start(t, n)
			leader := l.Leader()
			left := l.Other(leader)
			if _, err := left.Appctl("cluster/leave", l.Database); err != nil {
				t.Fatal(err)
			}
			l.Wait("it has left", func() bool {
				log, err := raft.Read(t.Context(), nil, left.File)
				return err == nil && log.Left
			})
			left.Stop()
			l.write(leader, 2)
			p := l.one(l.examine(l.collect(l.Members)), cluster.HasLeft)
			l.says(p, left.Address)
			l.repair(p)
			l.serves(l.Members...)
		})
	}
}

// TestDiskIsFull lets the writes of a server fail, which ends it inside a record.
func TestDiskIsFull(t *testing.T) {
	for _, n := range members(3) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := start(t, n)
			leader := l.Leader()
			full := l.Other(leader)
			full.LimitFile(300)
			l.Wait("the server ends", func() bool {
				l.write(leader, 1)
				return full.Status() == ""
			})
			full.Stop()
			p := l.one(l.examine(l.collect(l.Members)), cluster.CutOff, cluster.Behind)
			l.says(p, full.Address, "disk was full")
			l.repair(p)
			l.serves(l.Members...)
			if report := l.examine(l.collect(l.Members)); report.Found() {
				t.Errorf("after the repair: %s", printed(report))
			}
		})
	}
}

func TestRecordsInTheMiddleAreDamaged(t *testing.T) {
	l := start(t, 3)
	leader := l.Leader()
	broken := l.Other(leader)
	l.serves(l.Members...)
	broken.Stop()
	text := l.read(broken)
	at := strings.Index(string(text), `"sw2"`)
	text[at+1] = 0
	if err := os.WriteFile(broken.File, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p := l.one(l.examine(l.collect(l.Members)), cluster.LostRecords)
	l.says(p, broken.Address)
	l.repair(p)
	l.serves(l.Members...)
}

// loseRecord ends a member and takes a record out of its file: ovsdb-server refuses it.
func (l *lab) loseRecord(m *ovs.Member) {
	l.t.Helper()
	m.Stop()
	text := string(l.read(m))
	inside := strings.Index(text, `"sw2"`)
	from := strings.LastIndex(text[:inside], "OVSDB CLUSTER")
	to := inside + strings.Index(text[inside:], "OVSDB CLUSTER")
	if err := os.WriteFile(m.File, []byte(text[:from]+text[to:]), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func TestEntriesAreMissing(t *testing.T) {
	l := start(t, 3)
	broken := l.Other(l.Leader())
	l.serves(l.Members...)
	l.loseRecord(broken)
	p := l.one(l.examine(l.collect(l.Members)), cluster.RefusedLog)
	l.says(p, broken.Address)
	l.repair(p)
	l.serves(l.Members...)
}

// TestMajorityOfTheFilesIsBroken leaves one file of three, whose data is restored.
func TestMajorityOfTheFilesIsBroken(t *testing.T) {
	l := start(t, 3)
	l.serves(l.Members...)
	for _, m := range l.Members[:2] {
		l.loseRecord(m)
	}
	report := l.examine(l.collect(l.Members))
	for _, c := range report.Clusters {
		if p := c.Problems[0]; p.Kind != cluster.NoQuorum || len(c.Problems) != 3 {
			t.Errorf("problems: %s", printed(report))
		} else {
			l.repair(p)
		}
	}
	l.serves(l.Members...)
}

func TestJoinsAtAWrongAddress(t *testing.T) {
	l := start(t, 3)
	joining := l.Add()
	joining.Join(joining.Address + ".other")
	joining.Start()
	l.statusesOfJoining(joining, "none of its remote addresses is that of a server of the cluster")
	p := l.one(l.examine(l.collect(l.Members, joining)), cluster.StuckJoining)
	l.says(p, joining.Address, "none of its remote addresses")
	l.repair(p)
	l.serves(l.Members...)
}

// TestLeaderDiesWhileAServerJoins lets a server join at an address whose server is gone.
func TestLeaderDiesWhileAServerJoins(t *testing.T) {
	for _, n := range members(3) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := start(t, n)
			leader := l.Leader()
			leader.Kill()
			joining := l.Add()
			joining.Join(leader.Address)
			joining.Start()
			l.write(l.leaderWithout(leader), 2)
			l.statusesOfJoining(joining, "take no part", leader)
			p := l.one(l.examine(l.collect(l.Members)), cluster.StuckJoining, cluster.Behind)
			l.says(p, joining.Address, leader.Address, "take no part")
			l.repair(p)
			l.serves(l.without(leader)...)
		})
	}
}

func TestServerJoinsAClusterWithoutMajority(t *testing.T) {
	l := start(t, 3)
	leader := l.Leader()
	down := l.without(leader)
	for _, m := range down {
		m.Kill()
	}
	printed := l.tries(leader)
	joining := l.Add()
	joining.Join(leader.Address)
	joining.Start()
	l.statusesOfLostMajority([]*ovs.Member{leader}, down...)
	report := l.examine(l.collect(l.Members, printed...))
	l.says(l.one(report, cluster.StuckJoining, cluster.NoLeader), "no majority or no leader")
	l.repair(l.one(report, cluster.NoLeader, cluster.StuckJoining))
	l.joins(joining)
	l.serves(l.Members...)
}

// joins waits until a server has joined. A leader that was elected again while it added the server may wait for an answer that it has refused:
// that is repaired as the report says.
func (l *lab) joins(joining *ovs.Member) {
	l.t.Helper()
	l.Wait(joining.Name+" joins", func() bool {
		if strings.Contains(joining.Status(), "Status: cluster member") {
			return true
		}
		for _, c := range l.examine(l.collect(l.Members, l.Members...)).Clusters {
			for _, p := range c.Problems {
				if p.Kind == cluster.StuckJoining && strings.Contains(p.What, "an answer that it has refused") {
					l.repair(p)
				}
			}
		}
		return false
	})
}

func TestServerJoinsAnotherDatabase(t *testing.T) {
	l := start(t, 3)
	joining := l.Add()
	ovs.Run(t, "ovsdb-tool", "join-cluster", joining.File, "OVN_Southbound", joining.Address, l.Members[0].Address)
	p := l.one(l.examine(l.collect(l.Members)), cluster.StuckJoining)
	l.says(p, "OVN_Southbound", "OVN_Northbound")
	l.repair(p)
	l.serves(l.Members...)
}

// TestCreateClusterWasRunTwice lets a member of a cluster begin another one.
func TestCreateClusterWasRunTwice(t *testing.T) {
	l := start(t, 3)
	alone := l.Other(l.Leader())
	l.lose(alone)
	ovs.Run(t, "ovsdb-tool", "create-cluster", alone.File, ovs.NBSchema, alone.Address)
	alone.Start()
	alone.WaitFor("Leader: self")
	p := l.one(l.examine(l.collect(l.Members)), cluster.TwoClusters, cluster.SameAddress)
	l.says(p, alone.Address)
	l.repair(p)
	l.serves(l.Members...)
}

// TestMembersCommittedDifferentData lets two majorities of one cluster go on without each other, by
// files that are put back to an earlier state.
func TestMembersCommittedDifferentData(t *testing.T) {
	l := start(t, 3)
	l.serves(l.Members...)
	first, second, third := l.Members[0], l.Members[1], l.Members[2]
	for _, m := range l.Members {
		m.Stop()
	}
	before := l.read(second)
	first.Start()
	second.Start()
	l.write(l.Leader(), 2)
	first.Stop()
	second.Stop()
	if err := os.WriteFile(second.File, before, 0o600); err != nil {
		t.Fatal(err)
	}
	second.Start()
	third.Start()
	l.switches -= 2 // those of the first majority are lost
	l.write(l.Leader(), 3)
	p := l.one(l.examine(l.collect(l.Members)), cluster.Contradicting, cluster.Behind)
	l.says(p, first.Address, "differ")
	if !slices.Equal(p.Servers, []string{l.id(first)}) {
		t.Errorf("servers %q", p.Servers)
	}
	l.repair(p)
	l.serves(l.Members...)
}

func (l *lab) read(m *ovs.Member) []byte {
	l.t.Helper()
	text, err := os.ReadFile(m.File)
	if err != nil {
		l.t.Fatal(err)
	}
	return text
}

// TestMemberIsCutOff cuts the network of a member: it asks for votes while the others go on.
func TestMemberIsCutOff(t *testing.T) {
	for _, n := range members(3) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := start(t, n)
			apart := l.Leader()
			apart.CutOff()
			l.write(l.leaderWithout(apart), 3)
			printed := l.tries(apart)
			l.statusesOfCutOff(apart)
			p := l.one(l.examine(l.collect(l.Members, printed...)), cluster.Apart)
			l.says(p, apart.Address, "in vain")
			l.repair(p)
			l.serves(l.Members...)
		})
	}
}

// fullFileSystem starts a cluster whose third member has a small file system, which has to be root's to
// make, and fills it.
func fullFileSystem(t *testing.T) (l *lab, full *ovs.Member) {
	t.Helper()
	l = start(t, 2)
	full = l.Add()
	mount := exec.Command("mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", full.Dir)
	if out, err := mount.CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		full.Stop()
		if out, err := exec.Command("umount", full.Dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	full.Join(l.Members[0].Address)
	full.Start()
	full.WaitFor("Status: cluster member")
	leader := l.Leader()
	l.Wait("it cannot write", func() bool {
		l.write(leader, 5)
		status, _ := raft.ParseStatus(full.Status()) // before the file: what comes between the two is not missing in it
		log, err := raft.Read(t.Context(), nil, full.File)
		return err == nil && status.Last > log.Last()+1
	})
	return l, full
}

// room gives the file system of a member room.
func (l *lab) room(m *ovs.Member) {
	l.t.Helper()
	if out, err := exec.Command("mount", "-o", "remount,size=10m", m.Dir).CombinedOutput(); err != nil {
		l.t.Fatalf("%v: %s", err, out)
	}
}

func TestFileSystemIsFull(t *testing.T) {
	l, full := fullFileSystem(t)
	kind, words := cluster.Failed, "disk is full"
	ovs.Await(t, "the leader to miss the member", func() bool { // for two election timers
		if log, err := raft.Read(t.Context(), nil, full.File); err == nil &&
			log.Gap { // a short record had room, so the file is broken already
			kind, words = cluster.RefusedLog, "a full disk"
		}
		return problem(l.examine(l.collect(l.Members, l.Members...)), kind) != nil
	})
	p := l.one(l.examine(l.collect(l.Members, l.Members...)), kind)
	l.says(p, full.Address, words)
	if kind == cluster.Failed && !strings.HasPrefix(p.Repair[1].Command, "df ") {
		t.Errorf("the second step: %v", p.Repair[1])
	}
	full.Stop()
	l.room(full)
	l.repair(p)
	l.serves(l.Members...)
}

// TestFullFileSystemGotRoom gives the disk room while the server runs, which leaves a gap in its file.
func TestFullFileSystemGotRoom(t *testing.T) {
	l, full := fullFileSystem(t)
	l.room(full)
	l.write(l.Leader(), 2)
	l.Wait("the file has a gap", func() bool {
		log, err := raft.Read(t.Context(), nil, full.File)
		return err == nil && log.Gap
	})
	full.Stop()
	p := l.one(l.examine(l.collect(l.Members)), cluster.RefusedLog)
	l.says(p, full.Address, "a full disk that got room")
	l.repair(p)
	l.serves(l.Members...)
}

// TestCollectedWhileItChanges copies files, one after the other, while clients write: that is no
// problem.
func TestCollectedWhileItChanges(t *testing.T) {
	l := start(t, 3)
	leader := l.Leader()
	done, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				ended <- nil
				return
			default:
			}
			if err := leader.TryTransact(fmt.Sprintf(`{"op":"insert","table":"Logical_Switch","row":{"name":"more%d"}}`,
				i)); err != nil {
				ended <- err
				return
			}
		}
	}()
	for range 10 {
		if report := l.examine(l.collect(l.Members, l.Members...)); report.Found() {
			t.Errorf("%s", printed(report))
		}
		if report := l.examine(l.collect(l.Members)); report.Found() {
			t.Errorf("without statuses: %s", printed(report))
		}
	}
	close(done)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestLeadersChangeTooOften moves the leadership around.
func TestLeadersChangeTooOften(t *testing.T) {
	l := start(t, 3)
	for i := range 11 {
		leader := l.Leader()
		if _, err := leader.Appctl("cluster/failure-test", "transfer-leadership"); err != nil {
			t.Skip("no transfer-leadership here: ", err)
		}
		l.Wait(fmt.Sprint("leader ", i), func() bool { return !strings.Contains(leader.Status(), "Leader: self\n") })
		l.write(l.Leader(), 1)
	}
	p := l.one(l.examine(l.collect(l.Members)), cluster.Bouncing)
	l.says(p, "election timer of 1000 ms", "term ")
	l.repair(p)
	l.Wait("the timer is longer", func() bool { return strings.Contains(l.Leader().Status(), "Election timer: 2000\n") })
	l.serves(l.Members...)
}

// TestOneFileForTwoServers lets two servers go on with copies of one file.
func TestOneFileForTwoServers(t *testing.T) {
	l := start(t, 1)
	only := l.Members[0]
	only.Stop()
	before := l.read(only)
	only.Start()
	l.write(l.Leader(), 1)
	files := l.collect(l.Members)
	only.Stop()
	older := files[0]
	older.Name, older.Path = "older", filepath.Join(t.TempDir(), "older.db")
	if err := os.WriteFile(older.Path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := cluster.Examine(t.Context(), append(files, older))
	if err != nil || report.Found() {
		t.Errorf("an older file: %v %s", err, printed(report))
	}
	l.says(l.one(report, cluster.SameServer), "older file")
	if err := os.WriteFile(only.File, before, 0o600); err != nil {
		t.Fatal(err)
	}
	only.Start()
	l.write(l.Leader(), 2)
	l.says(l.one(l.examine(append(files, l.collect(l.Members)...)), cluster.SameServer), "of one server")
}

// TestMemberDoesNotKnowThatItJoined ends a server before it learns that the cluster counts it.
func TestMemberDoesNotKnowThatItJoined(t *testing.T) {
	l := start(t, 3)
	joining := l.Add()
	joining.Join(l.Members[0].Address)
	before := l.read(joining)
	joining.Start()
	joining.WaitFor("Status: cluster member")
	joining.Kill()
	if err := os.WriteFile(joining.File, before, 0o600); err != nil {
		t.Fatal(err)
	}
	p := l.one(l.examine(l.collect(l.Members)), cluster.StuckJoining)
	l.says(p, "counts it as a member already")
	l.repair(p)
	l.serves(l.Members...)
}

// TestEntriesOfAnOldLeader cuts off a leader that still takes changes: these are never committed.
func TestEntriesOfAnOldLeader(t *testing.T) {
	l := start(t, 3)
	old := l.Leader()
	l.serves(l.Members...)
	for _, m := range l.without(old) {
		m.Kill()
	}
	failed := make(chan error, 1)
	go func() { failed <- old.TryTransact(`{"op":"insert","table":"Logical_Switch","row":{"name":"lost"}}`) }()
	l.Wait("the entry is in its file", func() bool {
		log, err := raft.Read(t.Context(), nil, old.File)
		return err == nil && log.Last() > log.Committed
	})
	old.Kill()
	if err := <-failed; err == nil {
		t.Error("a leader without a majority committed a change")
	}
	for _, m := range l.without(old) {
		m.Start()
	}
	l.write(l.leaderWithout(old), 3)
	report := l.examine(l.collect(l.Members))
	p := l.one(report, cluster.Uncommitted, cluster.Behind)
	l.says(p, old.Address, "never committed")
	l.repair(l.one(report, cluster.Behind, cluster.Uncommitted))
	l.serves(l.Members...)
}

func TestFindings(t *testing.T) {
	l := start(t, 3)
	joining := l.Add()
	joining.Join(joining.Address + ".other")
	findings := cluster.Findings(l.examine(l.collect(l.Members)))
	if len(findings) != 1 || findings[0].Rule != "raft-stuck-joining" || findings[0].Severity != rule.Error ||
		!strings.Contains(fmt.Sprint(findings[0].Next), "join-cluster") || findings[0].Follows == "" {
		t.Errorf("findings: %+v", findings)
	}
	if findings := cluster.Findings(l.examine(l.collect(l.without(joining)))); len(findings) > 0 {
		t.Errorf("of a sound cluster: %+v", findings)
	}
}
