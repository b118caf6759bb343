package runtime

import "errors"

// ErrRunning is wrapped by Start's error when the daemon runs already.
var ErrRunning = errors.New("it is running already")

// ErrNotInstalled is wrapped when a program is missing; the message around it
// says which package has it.
var ErrNotInstalled = errors.New("not installed")
