package workdir

import "path/filepath"

// servicesFile is the name of the file with the services of the cluster, beside the OVN NB database
// whose load balancers have no names of them.
const servicesFile = "services.json"

// Services returns the path of the file with the services of the cluster.
func (d *Data) Services() string { return ServicesBeside(d.Database(NB)) }

// ServicesBeside returns the path of the file with the services of the cluster beside a collected OVN
// NB database, which may be a link to the database of another node.
func ServicesBeside(database string) string {
	if target, err := filepath.EvalSymlinks(database); err == nil {
		database = target
	}
	return filepath.Join(filepath.Dir(database), servicesFile)
}
