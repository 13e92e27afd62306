// A page with the widget, as its README shows one, and a wallet without a key: the address is that of the URL.
import { useEffect } from "react";
import { createRoot } from "react-dom/client";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createConfig, http, useAccount, useConnect, WagmiProvider } from "wagmi";
import { mock } from "wagmi/connectors";
import { injectStyles, InterwovenKitProvider, useInterwovenKit } from "@initia/interwovenkit-react";
import styles from "@initia/interwovenkit-react/styles.js";

const settings = await (await fetch("/settings.json")).json();
const address = new URLSearchParams(location.search).get("address");
const config = createConfig({
  chains: [settings.chain],
  connectors: [mock({ accounts: [address] })],
  transports: { [settings.chain.id]: http() },
});

function Page() {
  const { isConnected } = useAccount();
  const { connect, connectors } = useConnect();
  const { openWallet, openBridge, initiaAddress } = useInterwovenKit();
  useEffect(() => connect({ connector: connectors[0] }), []);
  if (!isConnected) return null;
  return (
    <>
      <output>{initiaAddress}</output>
      <button onClick={openWallet}>Wallet</button>
      <button onClick={() => openBridge(settings.transfer)}>Bridge</button>
    </>
  );
}

injectStyles(styles);
createRoot(document.body.appendChild(document.createElement("main"))).render(
  <QueryClientProvider client={new QueryClient()}>
    <WagmiProvider config={config}>
      <InterwovenKitProvider {...settings.kit}>
        <Page />
      </InterwovenKitProvider>
    </WagmiProvider>
  </QueryClientProvider>,
);
