package process

import "time"

// Options are the options of New. A replica of this host's own tools uses the zero value.
type Options struct {
	// Root is the absolute path of a folder with the root file system of an image, in
	// which daemons and tools run; "" for this host's. It is never written to.
	Root string
	// Folders are the absolute paths of the folders of this host that daemons and tools
	// see beside Root or, without one, can write to: workdir.RuntimeFolders. Without Root
	// and Folders, all files of this host stay as they are.
	Folders []string

	StartTimeout time.Duration // 0 means daemon.StartTimeout
	StopTimeout  time.Duration // 0 means daemon.StopTimeout
	NoNamespaces bool          // give daemons no network of their own even where that is possible
	NoFilter     bool          // start daemons and tools without the seccomp filter
}
