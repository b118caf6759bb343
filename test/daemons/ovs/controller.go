package ovs

import "path/filepath"

// Join makes the switch a chassis of a deployment, with br-int and an ovn-controller. Its name is
// the system-id and the host name.
func (s *Switch) Join(central *Central, name string) {
	s.tb.Helper()
	s.Vsctl("set", "Open_vSwitch", ".", "external_ids:system-id="+name, "external_ids:hostname="+name, "external_ids:ovn-remote="+central.Remote,
		"external_ids:ovn-encap-type=geneve", "external_ids:ovn-encap-ip=192.168.0.1", "--", "--may-exist", "add-br", "br-int", "--", "set", "Bridge", "br-int", "fail_mode=secure")
	s.Controller()
}

// Controller starts the ovn-controller of the switch. It ends with the switch.
func (s *Switch) Controller() {
	s.tb.Helper()
	s.controller = startDaemon(s.tb, s.Dir, "ovn-controller", s.server.Remote)
}

// Stop ends the daemons of the switch before the test ends. The database stays.
func (s *Switch) Stop() {
	if s.controller != nil {
		s.controller.stop()
		s.controller = nil
	}
	s.vswitchd.stop()
	s.server.Stop()
}

// Resume starts a switch again that Stop has ended, on its database and without its
// ovn-controller.
func (s *Switch) Resume() {
	s.tb.Helper()
	s.server = ServeIn(s.tb, s.Dir, filepath.Join(s.Dir, "conf.db"))
	s.vswitchd = nil
	s.startVswitchd()
}
