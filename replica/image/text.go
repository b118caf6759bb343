package image

import (
	"fmt"
	"strings"

	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// VersionsText returns the versions in an image, for people.
func VersionsText(ovs, ovn string) string {
	text := "Open vSwitch " + terminal.Escape(ovs)
	if ovn != "" {
		text += ", OVN " + terminal.Escape(ovn)
	}
	return text
}

// PrintList prints a line for each image.
func PrintList(p *show.Page, all []Listed) {
	if len(all) == 0 {
		p.Printf("There are no images: ovs-offline image add and ovs-offline image build make some.\n")
		return
	}
	t := p.Table("name", "runtime", "OVS", "OVN", "size", "used by")
	for _, i := range all {
		var users []string
		for _, path := range i.UsedBy {
			users = append(users, terminal.Escape(path))
		}
		t.AppendRow([]any{terminal.Escape(i.Name), i.Runtime, terminal.Escape(i.OVS), terminal.Escape(i.OVN), fmt.Sprintf("%d MB", i.Size/1e6), strings.Join(users, "\n")})
	}
	t.Render()
}
