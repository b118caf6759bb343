// Package rules has the rules of a check: one file for each, with its test beside it.
package rules

import (
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/answer/slow"
)

// All returns the rules. The ones that take longer are the last.
func All() []rule.Rule {
	rules := []rule.Rule{
		// Ports.
		interfaceWithoutPortNumber(),
		interfaceDown(),
		portInDeadVLAN(),
		bondMemberDown(),
		lacpWithoutPartner(),
		logicalPortTwice(),
		portBoundElsewhere(),
		portRequestedElsewhere(),
		portNotClaimed(),
		interfaceWithoutLogicalPort(),
		patchWithoutPeer(),
		mappedBridgeMissing(),

		// Tunnels.
		tunnelDown(),
		tunnelMissing(),
		tunnelToNowhere(),
		encapAddress(),
		encapDiffers(),

		// The control plane.
		chassisMissing(),
		chassisTwice(),
		chassisBehind(),
		northdBehind(),
		controllerNotConnected(),
		matchNorthdVersion(),

		// Addresses, routes, load balancers, gateways and matches.
		duplicateMAC(),
		duplicateIP(),
		duplicateFloatingIP(),
		duplicateVIP(),
		overlappingNetworks(),
		portSecurityExcludes(),
		macBindingContradicts(),
		fdbContradicts(),
		routeWithoutPath(),
		policyWithoutPath(),
		routerPortMissing(),
		routerPortUnconnected(),
		natWithoutGateway(),
		natWithoutPort(),
		bfdSessionDown(),
		balancerWithoutBackends(),
		balancerBackendDown(),
		balancerBackendVacant(),
		balancerCheckWithoutProbe(),
		balancerMalformed(),
		balancerUnused(),
		gatewayUnbound(),
		gatewayChassisMissing(),
		gatewayChassisName(),
		localnetUnmapped(),
		localnetWithoutNetwork(),
		matchMalformed(),
		matchRefersToNothing(),
		meterMissing(),
		requestedChassisMissing(),
		tunnelAddressTwice(),
		dhcpUnusable(),
		staleSouthbound(),
		chassisPrivateAlone(),

		// Neutron's routers in network namespaces.
		routerDoesNotForward(),
		routerActiveTwice(),

		// The machine.
		unitNotRunning(),
		knownDefects(),
		certificateExpiry(),
		unitMemory(),
		dpdkCores(),

		// Tables, flows and data.
		fdbFull(),
		bridgeWithoutFlows(),
		dataLost(),
		dataMissing(),

		// What takes longer.
		logs(),
		costlyRules(),
		outputToMissingPort(),
		drifted(),
		clusters(),
	}
	return slices.Concat(rules, slow.Rules())
}
