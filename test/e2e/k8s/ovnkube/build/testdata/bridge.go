package vrfmanager

import (
	"errors"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"MODULE/pkg/util"
)

// syncBridge makes a bridge without ports in place of a VRF's device where the kernel has
// no VRFs, and adds the routes to the VRF's table. It reports whether it did.
func (vrfm *Controller) syncBridge(v vrf) (error, bool) {
	ops := util.GetNetLinkOps()
	probe := &netlink.Vrf{LinkAttrs: netlink.LinkAttrs{Name: "probe-of-vrfs"}, Table: v.table}
	switch err := ops.LinkAdd(probe); {
	case err == nil:
		return ops.LinkDelete(probe), false
	case !errors.Is(err, unix.EOPNOTSUPP):
		return err, true
	}
	link, err := ops.LinkByName(v.name)
	if ops.IsLinkNotFoundError(err) {
		if err := ops.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: v.name}}); err != nil {
			return err, true
		}
		link, err = ops.LinkByName(v.name)
	}
	if err != nil {
		return err, true
	}
	if err := ops.LinkSetUp(link); err != nil {
		return err, true
	}
	for _, route := range v.routes {
		if err := vrfm.routeManager.Add(route); err != nil {
			return err, true
		}
	}
	vrfm.vrfs[link.Attrs().Index] = v
	return nil, true
}
