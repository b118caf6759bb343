package ovn

import (
	"ovs-offline/internal/services"
	"ovs-offline/internal/workdir"
	"ovs-offline/pkg/ovsdb/file"
)

// Services returns the names of the services that were collected beside a northbound database; none
// where the file has none or can't be read, since load balancers then keep their own names.
func Services(nb *file.Index) services.Names {
	if nb == nil {
		return nil
	}
	names, _ := services.Read(workdir.ServicesBeside(nb.Path))
	return names
}
