package collect

import (
	"fmt"
	"os"
	"path"
	"strings"

	"ovs-offline/internal/archive"
	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir/recording"
)

// addScript reads the script of ovs-save: the bridges with their OpenFlow
// versions, and the dumps that it holds itself (OVS 2.8 and before).
func (l *looseReader) addScript(name string, _ identity) error {
	spooled := l.tree.Files[name]
	file, err := os.Open(spooled.Spooled)
	if err != nil {
		return err
	}
	defer file.Close()
	parts, cut, err := openflow.ReadSaveScript(file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	node := l.node("")
	origin := l.origin(name)
	node.All = append(node.All, recording.Output{File: spooled, Command: recording.SaveScript, Origin: origin})
	if cut != "" {
		node.Lost = append(node.Lost, origin+" "+cut+": what followed is not known")
	}
	for _, command := range parts {
		node.AddBridge(command.Bridge)
		if err := l.addScriptPart(node, name, command); err != nil {
			return err
		}
	}
	return nil
}

func (l *looseReader) addScriptPart(node *recording.Recording, script string, command openflow.SaveCommand) error {
	output := recording.Output{Command: recording.Flows, Bridge: command.Bridge, OpenFlow: command.OpenFlow, Origin: l.origin(script)}
	switch command.Command {
	case "add-groups":
		output.Command = recording.Groups
	case "add-tlv-map":
		return nil // the replica reads it from the script
	}
	if command.File == "" {
		var err error
		if output.File, err = archive.Spool(l.ctx, l.spool, strings.NewReader(command.Text)); err != nil {
			return err
		}
		node.All = append(node.All, output)
		return nil
	}
	dump := path.Join(path.Dir(script), command.File)
	spooled, exists := l.tree.Files[dump]
	if !exists {
		node.Remarks = append(node.Remarks, fmt.Sprintf("%s restores %s of bridge %s from %s, which is not beside it", output.Origin, output.Command, command.Bridge, command.File))
		return nil
	}
	output.File, output.Origin = spooled, l.origin(dump)
	node.All = append(node.All, output)
	l.loose.saved[partName(l.source.Name, dump)] = true
	return nil
}
