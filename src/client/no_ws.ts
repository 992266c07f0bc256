/** In the place of the package `ws` where a bundle is made for browsers: these have a WebSocket. */
export const WebSocket = undefined;
