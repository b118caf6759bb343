package docker

import _ "github.com/moby/moby/client"
