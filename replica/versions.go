package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// compareVersions reports the recorded and the running versions, and adds remarks if
// they differ.
func (s *starter) compareVersions(ctx context.Context) {
	var running versions.Pair
	var ovs []byte
	var err error
	if s.serves(workdir.OVS) {
		ovs, err = askVersion(ctx, s.rt, server(s.wd, workdir.OVS)) // the server already runs
	} else {
		ovs, err = s.tool(ctx, "ovs-vswitchd", "--version")
	}
	if err == nil {
		running.OVS = versions.PrintedOVS(ovs)
	} else {
		unknownVersion(s.report, "Open vSwitch", err)
	}
	if ovn, err := s.tool(ctx, "ovn-nbctl", "--version"); err == nil {
		running.OVN = versions.PrintedOVN(ovn)
	} else {
		unknownVersion(s.report, "OVN", err)
	}
	recorded := recordedVersions(ctx, s.wd, s.manifest)
	s.report.Running, s.report.Recorded = running, recorded
	cost, other := versionRemarks(programVersions(recorded, s.kinds), running)
	for _, remark := range cost {
		s.report.Remark(remark)
	}
	if len(cost) > 0 && !s.opts.VersionsNamed {
		s.report.Remark(s.advice(other))
	}
}

// unknownVersion adds a remark, unless the programs are not installed.
func unknownVersion(rep *report.Report, of string, err error) {
	if !errors.Is(err, runtime.ErrNotInstalled) {
		rep.Remark(fmt.Sprintf("the running version of %s is not known: %v", of, err))
	}
}

// versionRemarks returns the consequences of other versions than the recorded ones, and
// the recorded minor versions of these programs. Another Open vSwitch may print the same
// flows differently, or reject them. An older ovn-trace drops the logical flows that it
// can't parse.
func versionRemarks(recorded, running versions.Pair) (remarks []string, other versions.Pair) {
	differ := func(a, b string) bool { return a != "" && b != "" && versions.Minor(a) != versions.Minor(b) }
	if differ(recorded.OVS, running.OVS) {
		other.OVS = versions.Minor(recorded.OVS)
		remarks = append(remarks, fmt.Sprintf("recorded with Open vSwitch %s, running %s: traces may differ from the node's", recorded.OVS, running.OVS))
	}
	if differ(recorded.OVN, running.OVN) {
		other.OVN = versions.Minor(recorded.OVN)
		cost := "traces may differ from the node's"
		if versions.Compare(running.OVN, recorded.OVN) < 0 {
			cost = "ovn-trace leaves out logical flows that it can't parse, and may answer wrongly"
		}
		remarks = append(remarks, fmt.Sprintf("recorded with OVN %s, running %s: %s", recorded.OVN, running.OVN, cost))
	}
	return remarks, other
}

// advice returns the command that adds an image with the recorded versions.
func (s *starter) advice(other versions.Pair) string {
	again := "start again"
	if s.rt.Name() != process.Name {
		again += " with --runtime " + process.Name
	}
	return fmt.Sprintf("to run what the node ran: %s; then %s", AddImage(s.manifest, other), again)
}

// AddImage returns the command that adds an image with these versions, and which image
// that is.
func AddImage(manifest *workdir.Manifest, wanted versions.Pair) string {
	return addImage(manifest, "a container image (of a registry or a file) or a root directory that has "+wanted.String())
}

// AddBuild returns the command that adds an image of a build of OVN, and which image that is.
func AddBuild(manifest *workdir.Manifest, wanted versions.Pair, build runtime.Build) string {
	if build == runtime.Stock {
		return AddImage(manifest, wanted)
	}
	return addImage(manifest, fmt.Sprintf("the image of %s's pods, which has %s", build, wanted))
}

func addImage(manifest *workdir.Manifest, which string) string {
	image := "SOURCE"
	if known := imageOf(manifest); known != "" {
		image, which = known, "the image of its pods"
	}
	return fmt.Sprintf("\"ovs-offline image add %s\", with %s", image, which)
}

// Build returns whose build of OVN a deployment runs, by the image of its pods, and by what kube-ovn writes into the rows of the OVN
// databases: ovn-northd copies external_ids of ports to the southbound one.
func Build(ctx context.Context, wd *workdir.Dir) (runtime.Build, error) {
	manifest, err := wd.Manifest()
	if err != nil {
		return "", err
	}
	for _, collection := range manifest.Collections {
		if runtime.BuildOf("", collection.Image) == runtime.KubeOVN {
			return runtime.KubeOVN, nil
		}
	}
	for kind, tables := range map[workdir.Kind][]string{workdir.NB: {"Logical_Router", "Logical_Switch"}, workdir.SB: {"Port_Binding"}} {
		if _, err := os.Stat(wd.Database(kind)); err != nil {
			continue
		}
		vendor, err := vendorIn(ctx, wd, kind, tables...)
		if err != nil || vendor == string(runtime.KubeOVN) {
			return runtime.Build(vendor), err
		}
	}
	return runtime.Stock, nil
}

// vendorIn returns the first external_ids:vendor in tables of a database, "" for none.
func vendorIn(ctx context.Context, wd *workdir.Dir, kind workdir.Kind, tables ...string) (string, error) {
	index, err := wd.Index(ctx, wd.Database(kind), tables...)
	if err != nil {
		return "", err
	}
	defer index.Close()
	for _, table := range tables {
		for row, err := range index.Rows(table, "external_ids") {
			if err != nil {
				return "", err
			}
			if vendor := row.Map("external_ids")["vendor"]; vendor != "" {
				return vendor, nil
			}
		}
	}
	return "", nil
}

// reference matches the reference of an image in a registry. It has no character with a
// meaning of its own to a shell: users paste it.
var reference = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)

// maxReference is the longest reference in bytes. A repetition of that many in the pattern
// would take a tenth of the memory that the start of the program allocates.
const maxReference = 512

// imageOf returns the reference of the image of the node's pods, "" if the source had
// none, or none that is a reference. The image of OVN's pods comes first: on some
// clusters, OVS is the host's own.
func imageOf(manifest *workdir.Manifest) string {
	for _, kind := range []workdir.Kind{workdir.SB, workdir.NB, workdir.OVS} {
		if collection := manifest.Collection(kind); collection != nil && len(collection.Image) <= maxReference && reference.MatchString(collection.Image) {
			return collection.Image
		}
	}
	return ""
}

// askVersion asks a running daemon for its version.
func askVersion(ctx context.Context, rt runtime.Runtime, d runtime.Daemon) ([]byte, error) {
	return daemon.Ask(ctx, rt, d.RunDir, d.Program, "version")
}

// findDetrace makes the wrapper of ovn-detrace run this host's ovn-detrace if the image
// has none: ovn-detrace needs Python and a library of OVS.
func (s *starter) findDetrace(ctx context.Context) {
	const detrace = "ovn-detrace"
	if len(s.opts.Exec) == 0 || !s.serves(workdir.NB) || !s.serves(workdir.SB) {
		return
	}
	if _, err := s.tool(ctx, "bash", "-c", "type -P "+detrace); err != nil && ctx.Err() == nil {
		s.hostTools = append(s.hostTools, detrace)
		s.report.Remark(detrace + " is not in the image, so its wrapper runs this host's")
	}
}

// Recorded returns the versions on the node of the programs that a replica of
// the workdir runs.
func Recorded(ctx context.Context, wd *workdir.Dir) (versions.Pair, error) {
	manifest, err := wd.Manifest()
	if err != nil {
		return versions.Pair{}, err
	}
	return programVersions(recordedVersions(ctx, wd, manifest), snapshot.ServedKinds(wd)), nil
}

// programVersions returns the versions of the programs that matter for a replica with these kinds
// of data: ovs-vswitchd for OVS, and the tools of OVN for its databases.
func programVersions(pair versions.Pair, kinds []workdir.Kind) versions.Pair {
	if !slices.Contains(kinds, workdir.OVS) {
		pair.OVS = ""
	}
	if !slices.Contains(kinds, workdir.NB) && !slices.Contains(kinds, workdir.SB) {
		pair.OVN = ""
	}
	return pair
}

// recordedVersions returns the versions in the manifest. Those of OVN are in the
// collections of its databases, which may be a controller's, or else of the node. Some
// databases have no version in the manifest: an earlier version of ovs-offline
// collected them, or a user added them. They are read.
func recordedVersions(ctx context.Context, wd *workdir.Dir, manifest *workdir.Manifest) versions.Pair {
	var known versions.Pair
	var unread []file.Info
	kinds := workdir.Kinds()
	slices.Reverse(kinds)
	for _, kind := range kinds {
		var own versions.Pair
		if collection := manifest.Collection(kind); collection != nil {
			own = versions.Pair{OVS: collection.OVSVersion, OVN: collection.OVNVersion}
		}
		known = known.Or(own)
		if kind == workdir.OVS && own.OVS == "" || kind != workdir.OVS && own.OVN == "" {
			if info, err := inspect(ctx, wd.Database(kind)); err == nil { // else Start reports the problem
				unread = append(unread, info)
			}
		}
	}
	return versions.Of(known, unread...)
}

func inspect(ctx context.Context, path string) (file.Info, error) {
	f, err := os.Open(path)
	if err != nil {
		return file.Info{}, err
	}
	defer f.Close()
	return file.Inspect(ctx, f)
}
