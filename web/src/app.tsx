/** The frame around every view: where one can go, the bell, the connection. */
import {
  ActionIcon,
  AppShell,
  Badge,
  Burger,
  Group,
  Indicator,
  Menu,
  NavLink,
  Text,
  Title,
  Tooltip,
  useMantineColorScheme,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconBell, IconDeviceDesktop, IconLogout, IconMoon, IconSun, IconUser } from "@tabler/icons-react";
import { useEffect, useRef } from "react";
import { Link, Redirect, Route, Router, Switch, useLocation } from "wouter";
import { useHashLocation } from "wouter/use-hash-location";
import { OfflineBanner } from "./connection/offline_banner.js";
import { CountsProvider, useCounts } from "./live/counts.js";
import { InboxProvider } from "./live/inbox.js";
import { Broken } from "./parts/broken.js";
import { Mark } from "./parts/mark.js";
import { useViewsAhead, View } from "./parts/view.js";
import { PLACES } from "./places.js";
import { useSession } from "./session/session.js";
import { FirstVisit } from "./visit/first_visit.js";

export function App() {
  return (
    <Router hook={useHashLocation}>
      <CountsProvider>
        <InboxProvider>
          <Frame />
        </InboxProvider>
      </CountsProvider>
    </Router>
  );
}

const VIEWS = PLACES.map(({ load }) => load);

function Frame() {
  const [opened, { toggle, close }] = useDisclosure(false);
  const [location] = useLocation();
  const label = PLACES.find(({ path }) => location.startsWith(path))?.label ?? "Tidings";
  const view = useRef<HTMLDivElement>(null);
  // Whoever has chosen a place is in it: its keys are theirs.
  const enter = () => {
    close();
    view.current?.focus({ preventScroll: true });
  };
  useViewsAhead(VIEWS);
  useTitle(label);
  return (
    <AppShell
      layout="alt"
      padding={0}
      header={{ height: 52 }}
      navbar={{ width: 212, breakpoint: "sm", collapsed: { mobile: !opened } }}
    >
      <AppShell.Header>
        <Group h="100%" px="md" gap="sm" wrap="nowrap">
          <button type="button" className="skip" onClick={() => view.current?.focus()}>
            Skip to what is shown
          </button>
          <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Menu" />
          <Title order={1} size="h5" style={{ flex: 1 }}>
            {label}
          </Title>
          <Bell enter={enter} />
          <SchemeMenu />
          <UserMenu />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" aria-label="Places">
        <Group gap="xs" px="xs" py={6} mb="sm" wrap="nowrap">
          <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Menu" />
          <Mark />
          <Text fw={700} size="lg">
            Tidings
          </Text>
        </Group>
        {PLACES.map(({ path, label, icon: Icon }) => (
          <NavLink
            key={path}
            component={Link}
            href={path}
            label={label}
            leftSection={<Icon size={18} stroke={1.7} aria-hidden />}
            active={location.startsWith(path)}
            aria-current={location.startsWith(path) ? "page" : undefined}
            rightSection={path === "/inbox" ? <UnreadCount /> : null}
            onClick={enter}
            mb={2}
            style={{ borderRadius: "var(--mantine-radius-md)" }}
          />
        ))}
      </AppShell.Navbar>
      <AppShell.Main h="100dvh" style={{ display: "flex", flexDirection: "column", minHeight: 0 }}>
        <OfflineBanner />
        <FirstVisit />
        <div ref={view} data-view tabIndex={-1} style={{ flex: 1, minHeight: 0, overflow: "auto", outline: "none" }}>
          <Switch>
            {PLACES.map(({ path, load }) => (
              <Route key={path} path={`${path}/*?`}>
                <Broken key={path}>
                  <View load={load} />
                </Broken>
              </Route>
            ))}
            <Route>
              <Redirect to="/threads" replace />
            </Route>
          </Switch>
        </div>
      </AppShell.Main>
    </AppShell>
  );
}

/** How many are unread: the server counts up to a cap. */
function useUnread(): { readonly unread: number; readonly shown: string } {
  const counts = useCounts();
  const unread = counts?.unread ?? 0;
  return { unread, shown: counts !== null && unread >= counts.cap ? `${counts.cap}+` : String(unread) };
}

/** As the bell has it, which says so also to those who do not see it. */
function UnreadCount() {
  const { unread, shown } = useUnread();
  if (unread === 0) return null;
  return (
    <Badge size="sm" aria-hidden>
      {shown}
    </Badge>
  );
}

/** For whoever has the page among many: where it stands, and how much waits. */
function useTitle(label: string): void {
  const { unread, shown } = useUnread();
  const title = `${unread === 0 ? "" : `(${shown}) `}${label === "Tidings" ? "" : `${label} · `}Tidings`;
  useEffect(() => {
    document.title = title;
  }, [title]);
}

function Bell({ enter }: { readonly enter: () => void }) {
  const { unread, shown } = useUnread();
  return (
    <Tooltip label={unread === 0 ? "Nothing is unread" : `${shown} unread`}>
      <Indicator label={shown} size={17} color="red.8" disabled={unread === 0} offset={5}>
        <ActionIcon
          component={Link}
          href="/inbox"
          onClick={enter}
          variant="subtle"
          color="gray"
          size="lg"
          aria-label={unread === 0 ? "Inbox, nothing unread" : `Inbox, ${shown} unread`}
        >
          <IconBell size={20} stroke={1.7} />
        </ActionIcon>
      </Indicator>
    </Tooltip>
  );
}

function SchemeMenu() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const schemes = [
    { value: "light", label: "Light", icon: IconSun },
    { value: "dark", label: "Dark", icon: IconMoon },
    { value: "auto", label: "As the system", icon: IconDeviceDesktop },
  ] as const;
  const { icon: Current } = schemes.find(({ value }) => value === colorScheme) ?? schemes[2];
  return (
    <Menu>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Light or dark">
          <Current size={20} stroke={1.7} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {schemes.map(({ value, label, icon: Icon }) => (
          <Menu.Item key={value} leftSection={<Icon size={16} />} onClick={() => setColorScheme(value)}>
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

function UserMenu() {
  const { user_id, leave } = useSession();
  return (
    <Menu>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Account">
          <IconUser size={20} stroke={1.7} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label className="outside">Signed in as {user_id}</Menu.Label>
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={leave}>
          Forget the token here
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
