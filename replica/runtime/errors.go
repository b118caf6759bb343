package runtime

import "errors"

// ErrRunning is wrapped by Start's error when the daemon runs already.
var ErrRunning = errors.New("it is running already")

// ErrNotInstalled is wrapped when a program is missing; the message around it
// says which package has it.
var ErrNotInstalled = errors.New("not installed")

// ErrNoImage is wrapped when a container engine has no image to start; the
// message around it says how to get one.
var ErrNoImage = errors.New("no image")

// ErrNotRunning is wrapped when something needs the running replica.
var ErrNotRunning = errors.New("no replica runs")
