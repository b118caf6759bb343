package collect

import (
	"fmt"

	"ovs-offline/workdir"
)

// withHost adds what belongs to the machine to the collections, and what tells about its Open vSwitch
// where nothing can be replayed.
func (w *writer) withHost(out []workdir.Collection) ([]workdir.Collection, error) {
	alone := len(out) == 0
	if alone && !(w.opts.Select.OVS && w.opts.Select.OVN && w.plan.tells()) {
		return out, nil
	}
	if alone && len(w.plan.Recorded) > 0 {
		ovs, err := w.outputs()
		if err != nil {
			return nil, err
		}
		out = append(out, ovs)
	}
	keep, err := w.keepsHost(out, alone)
	if err != nil || keep || len(w.plan.HostLogs)+len(w.plan.HostOutputs) == 0 {
		return out, err
	}
	host, err := w.host()
	if alone {
		host.Remarks = append(host.Remarks, "nothing can be replayed: neither databases nor flows were found, only logs and outputs")
	}
	return append(out, host), err
}

// keepsHost reports whether what the workdir has of a machine stays: that belongs to the Open vSwitch
// in it, unless that is replaced too. It is an error if nothing but such files would be replaced.
func (w *writer) keepsHost(out []workdir.Collection, alone bool) (bool, error) {
	if alone {
		return false, w.opts.refuse(w.wd, workdir.Host)
	}
	manifest, err := w.wd.Manifest()
	if err != nil {
		return false, err
	}
	return out[0].Kind != workdir.OVS && manifest.Collection(workdir.OVS) != nil && manifest.Collection(workdir.Host) != nil, nil
}

// outputs writes outputs about Open vSwitch without a database and flows.
func (w *writer) outputs() (workdir.Collection, error) {
	if err := w.opts.refuse(w.wd, workdir.OVS); err != nil {
		return workdir.Collection{}, err
	}
	out := w.begin(workdir.OVS)
	if err := w.staging.Replace(workdir.OVS, false); err != nil {
		return out, err
	}
	for _, output := range w.plan.Recorded {
		if err := w.recorded(output, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// host writes the logs, outputs and texts of the machine.
func (w *writer) host() (workdir.Collection, error) {
	out := w.begin(workdir.Host)
	if err := w.staging.Replace(workdir.Host, false); err != nil {
		return out, err
	}
	for _, output := range w.plan.HostOutputs {
		path := w.staging.HostRecorded(string(output.Command))
		if output.Device != "" {
			path = w.staging.HostDevice(output.Device, string(output.Command))
		}
		if err := w.output(output, path, &out); err != nil {
			return out, err
		}
	}
	return out, w.hostLogs(&out)
}

// hostLogs moves the logs of programs. If several logs of a program have the same name, each but the first
// gets a number; a copy is left out.
func (w *writer) hostLogs(out *workdir.Collection) error {
	type log struct{ program, name string }
	type content struct {
		log
		sum string
	}
	names, contents := map[log]int{}, map[content]bool{}
	for _, one := range w.plan.HostLogs {
		key := log{one.Program, one.Name}
		same := content{key, one.SHA256}
		if contents[same] {
			continue
		}
		contents[same] = true
		names[key]++
		name := one.Name
		if n := names[key]; n > 1 {
			name = fmt.Sprintf("%d.%s", n, one.Name)
		}
		file := workdir.File{Origin: one.Origin}
		if one.Truncated {
			file.Remarks = []string{"cut by sos: only its end was collected"}
		}
		if err := w.move(one.File, w.staging.HostLog(one.Program, name), file, out); err != nil {
			return err
		}
	}
	return nil
}
