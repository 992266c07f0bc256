import { expect, it } from "vitest";
import { networkOf } from "./addresses.js";

it("an address of IPv4 is one party, however it is written; of IPv6 a network is", () => {
  for (const [address, network] of [
    ["127.0.0.1", "127.0.0.1"],
    ["::ffff:10.1.2.3", "10.1.2.3"],
    ["::FFFF:10.1.2.3", "10.1.2.3"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"],
    ["2001:DB8:1:2::6", "2001:db8:1:2::"],
    ["2001:db8::6", "2001:db8:0:0::"],
    ["::1", "0:0:0:0::"],
    ["fe80::1%eth0", "fe80:0:0:0::"],
    ["2001:db8:1::", "2001:db8:1:0::"],
    ["", ""],
  ] as const)
    expect(networkOf(address), address).toBe(network);
});
