// Package draw writes a matrix of package reach as a page.
package draw

import (
	"io"

	"ovs-offline/reach"
)

// HTML writes a page.
func HTML(w io.Writer, d *reach.Document) error { return nil }
