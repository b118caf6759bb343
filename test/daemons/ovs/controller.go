package ovs

import "path/filepath"

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
