package ovnkube

import "io"

// Serve starts servers in all pods, on the nodes and outside.
func (d *Deployment) Serve(pods []Pod) (io.Closer, error) {
	var all closers
	add := func(c io.Closer, err error) error {
		if err == nil {
			all = append(all, c)
		}
		return err
	}
	err := add(Serve(d.fabric.network(), outside))
	for _, p := range pods {
		if err == nil {
			err = add(Serve(p.Network, p.Title()))
		}
	}
	for _, n := range d.Nodes {
		if err == nil {
			err = add(Serve(n.Network(), n.Name))
		}
	}
	if err != nil {
		all.Close()
		return nil, err
	}
	return all, nil
}
