package services

import (
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
)

// Beside returns the names of the services that were collected beside a northbound database; none
// where the file has none or can't be read, since load balancers then keep their own names.
func Beside(nb *file.Index) Names {
	if nb == nil {
		return nil
	}
	names, _ := Read(workdir.ServicesBeside(nb.Path))
	return names
}
