// Package sos collects a sos report into a workdir: its OVS half, its OVN
// half, or both in the same pass over the archive.
package sos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ovs-offline/collect"
	"ovs-offline/internal/limit"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/sosreport"
)

// Half is what to take of a report.
type Half struct{ OVS, OVN bool }

// Collect reads the report at source once and puts the halves asked for into
// the workdir. What the workdir held of other kinds stays as it is; on any
// error all of it does.
func Collect(ctx context.Context, wd *workdir.Dir, source string, half Half, opts collect.Options) ([]workdir.Collection, error) {
	if half.OVS {
		if err := collect.Refuse(wd, opts.Force, false, workdir.OVS); err != nil {
			return nil, err
		}
	}
	staging, err := wd.Stage()
	if err != nil {
		return nil, err
	}
	defer staging.Discard()
	spool, err := staging.Spool()
	if err != nil {
		return nil, err
	}
	if opts.Limits == (limit.Limits{}) {
		opts.Limits = limit.Default()
	}
	report, err := sosreport.OpenWithin(ctx, source, spool, opts.Limits, opts.Progress)
	if err != nil {
		return nil, err
	}
	c := &collector{ctx: ctx, staging: staging, report: report, half: half, wd: wd, opts: opts, moved: map[string]string{}}
	if c.source, err = filepath.Abs(source); err != nil {
		return nil, err
	}
	collections, err := c.collect()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return collections, staging.Install(collections...)
}

type collector struct {
	ctx       context.Context
	wd        *workdir.Dir
	staging   *workdir.Staging
	report    *sosreport.Report
	source    string
	half      Half
	opts      collect.Options
	databases map[workdir.Kind]chosen
	// moved tells where a spooled file went: links give one file several names.
	moved map[string]string
	// broken are files in a database's place that are none, with the reason.
	broken []string
}

// chosen is the best file for a kind of database, and what was not taken.
type chosen struct {
	sosreport.Database
	info    ovsdb.Info
	remarks []string
}

func (c *collector) collect() ([]workdir.Collection, error) {
	c.chooseDatabases()
	var out []workdir.Collection
	if c.half.OVS && c.hasOVS() {
		ovs, err := c.collectOVS()
		if err != nil {
			return nil, err
		}
		out = append(out, ovs)
	}
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		if _, there := c.databases[kind]; !c.half.OVN || !there {
			continue
		}
		ovn, err := c.collectOVN(kind)
		if err != nil {
			return nil, err
		}
		out = append(out, ovn)
	}
	if len(out) == 0 {
		return nil, c.nothing()
	}
	if half := c.half; half.OVN && len(c.broken) > 0 {
		last := &out[len(out)-1]
		last.Lost = append(last.Lost, c.broken...)
	}
	return out, nil
}

// nothing says what the report lacks and what it has instead.
func (c *collector) nothing() error {
	var has []string
	for _, kind := range workdir.Kinds() {
		if _, there := c.databases[kind]; there {
			has = append(has, "an "+kind.Title()+" database")
		}
	}
	if len(c.report.Bridges) > 0 {
		has = append(has, fmt.Sprintf("%d bridges", len(c.report.Bridges)))
	}
	what, hint := "OVS or OVN data", ""
	switch {
	case !c.half.OVN:
		what, hint = "OVS data", "; was the openvswitch plugin enabled (sos report -e openvswitch)?"
	case !c.half.OVS:
		what, hint = "OVN database", "; take the report of a controller, with sos report -e ovn_central"
	}
	sentence := "no " + what + " in the report" + hint
	if len(has) > 0 {
		sentence += " It has " + strings.Join(has, ", ") + "."
	}
	if len(c.broken) > 0 {
		sentence += " " + strings.Join(c.broken, "; ")
	}
	return fmt.Errorf("%w: %s", collect.ErrNothing, sentence)
}

func (c *collector) hasOVS() bool {
	_, db := c.databases[workdir.OVS]
	return db || len(c.report.Bridges) > 0
}

// chooseDatabases takes the largest sound file for each kind.
func (c *collector) chooseDatabases() {
	c.databases = map[workdir.Kind]chosen{}
	for _, db := range c.report.Databases {
		info, err := collect.Inspect(db.File)
		kind := collect.KindOf(info.Name)
		if err != nil {
			c.broken = append(c.broken, fmt.Sprintf("%s: %v", db.Origin, err))
			continue
		}
		if kind == "" {
			continue // local-config, hardware_vtep and the like
		}
		next := chosen{Database: db, info: info}
		if best, there := c.databases[kind]; there {
			if best.Size >= db.Size {
				best, next = next, best
			}
			next.remarks = append(next.remarks, fmt.Sprintf("%s holds the same database and was not taken: it is smaller", best.Origin))
		}
		c.databases[kind] = next
	}
	c.broken = append(c.broken, c.report.Dangling...)
}

func (c *collector) begin(kind workdir.Kind) workdir.Collection {
	tool := "sos " + c.report.SosVersion
	if c.report.SosVersion == "" {
		tool = "sos of unknown version"
	}
	return workdir.Collection{
		Kind:      kind,
		Source:    workdir.Source{Kind: "sos report", Name: c.source, Tool: tool},
		Host:      c.report.Host,
		Collected: time.Now().UTC().Truncate(time.Second),
	}
}

func (c *collector) collectOVN(kind workdir.Kind) (workdir.Collection, error) {
	if err := collect.Refuse(c.wd, c.opts.Force, true, kind); err != nil {
		return workdir.Collection{}, err
	}
	out := c.begin(kind)
	out.OVNVersion = c.report.OVNVersion
	if err := c.staging.Replace(kind, true); err != nil {
		return out, err
	}
	return out, c.takeDatabase(kind, &out)
}

func (c *collector) takeDatabase(kind workdir.Kind, out *workdir.Collection) error {
	db := c.databases[kind]
	file, err := c.move(db.File, c.staging.Database(kind), db.Origin)
	if err != nil {
		return err
	}
	file.Remarks = append(collect.DatabaseRemarks(db.info), db.remarks...)
	out.Files = append(out.Files, file)
	return nil
}

func (c *collector) move(spooled, path, origin string) (workdir.File, error) {
	if err := c.ctx.Err(); err != nil {
		return workdir.File{}, err
	}
	file, err := c.place(spooled, path)
	if err != nil {
		return file, fmt.Errorf("%s: %w", origin, err)
	}
	file.Origin = origin
	return file, nil
}

// where is the path of a spooled file, which may have been moved under another
// of its names.
func (c *collector) where(spooled string) string {
	if path, there := c.moved[spooled]; there {
		return path
	}
	return spooled
}

func (c *collector) place(spooled, path string) (workdir.File, error) {
	if _, again := c.moved[spooled]; !again {
		c.moved[spooled] = path
		return c.staging.Move(spooled, path)
	}
	in, err := os.Open(c.where(spooled))
	if err != nil {
		return workdir.File{}, err
	}
	defer in.Close()
	return c.staging.Copy(in, path)
}
