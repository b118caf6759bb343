package collect

import (
	"fmt"
	"os"
	"path"
	"strings"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/recording"
)

// addScript reads the script of ovs-save: the bridges with their OpenFlow
// versions, and the dumps that it holds itself (OVS 2.8 and before).
func (l *looseReader) addScript(name string, _ identity) error {
	spooled := l.tree.Files[name]
	f, err := os.Open(spooled.Spooled)
	if err != nil {
		return err
	}
	defer f.Close()
	parts, cut, err := openflow.ReadSaveScript(f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	n := l.node("")
	origin := l.origin(name)
	n.All = append(n.All, recording.Output{File: spooled, Command: recording.SaveScript, Origin: origin})
	if cut != "" {
		n.Lost = append(n.Lost, origin+" "+cut+": what followed is not known")
	}
	for _, p := range parts {
		n.AddBridge(p.Bridge)
		if err := l.addScriptPart(n, name, p); err != nil {
			return err
		}
	}
	return nil
}

func (l *looseReader) addScriptPart(n *recording.Node, script string, p openflow.SaveCommand) error {
	o := recording.Output{Command: recording.Flows, Bridge: p.Bridge, OpenFlow: p.OpenFlow, Origin: l.origin(script)}
	switch p.Command {
	case "add-groups":
		o.Command = recording.Groups
	case "add-tlv-map":
		return nil // the replica reads it from the script
	}
	if p.File == "" {
		var err error
		if o.File, err = archive.Spool(l.ctx, l.spool, strings.NewReader(p.Text)); err != nil {
			return err
		}
		n.All = append(n.All, o)
		return nil
	}
	dump := path.Join(path.Dir(script), p.File)
	spooled, exists := l.tree.Files[dump]
	if !exists {
		n.Remarks = append(n.Remarks, fmt.Sprintf("%s restores %s of bridge %s from %s, which is not beside it", o.Origin, o.Command, p.Bridge, p.File))
		return nil
	}
	o.File, o.Origin = spooled, l.origin(dump)
	n.All = append(n.All, o)
	l.loose.saved[inside(l.source.Name, dump)] = true
	return nil
}
